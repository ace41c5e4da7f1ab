//! What one check compared and what it found wrong.

use serde_json::{Value, json};

/// Most faults that are told one by one, to scripts ...
const MOST_KEPT: usize = 20;
/// ... and to people.
const MOST_TOLD: usize = 5;

/// The result of one check.
#[derive(Debug)]
pub struct Findings {
    pub check: &'static str,
    /// How many of what were compared.
    compared: u64,
    of: &'static str,
    /// More about it, for people.
    note: String,
    faults: Vec<String>,
    fault_count: u64,
    skipped: bool,
}

impl Findings {
    pub fn new(check: &'static str, of: &'static str) -> Self {
        Findings {
            check,
            compared: 0,
            of,
            note: String::new(),
            faults: Vec::new(),
            fault_count: 0,
            skipped: false,
        }
    }

    /// A check that could not be made; the text says what it takes.
    pub fn skipped(check: &'static str, of: &'static str, why: &str) -> Self {
        Findings {
            skipped: true,
            note: why.into(),
            ..Findings::new(check, of)
        }
    }

    /// Counts comparisons.
    pub fn compared(&mut self, count: u64) {
        self.compared += count;
    }

    pub fn note(&mut self, note: impl Into<String>) {
        self.note = note.into();
    }

    /// Something is wrong; the text names where and what was expected.
    pub fn fault(&mut self, text: impl Into<String>) {
        self.fault_count += 1;
        if self.faults.len() < MOST_KEPT {
            self.faults.push(text.into());
        }
    }

    /// A fault unless it is so.
    pub fn expect(&mut self, so: bool, otherwise: impl FnOnce() -> String) {
        if !so {
            self.fault(otherwise());
        }
    }

    pub fn is_sound(&self) -> bool {
        self.fault_count == 0
    }

    /// A line for the check, then one a fault.
    pub fn lines(&self) -> Vec<String> {
        let verdict = match (self.is_sound(), self.skipped) {
            (false, _) => "FAILED",
            (true, true) => "skipped",
            (true, false) => "ok",
        };
        let mut line = format!(
            "{verdict:<7} {:<13} {} {}",
            self.check, self.compared, self.of
        );
        if !self.note.is_empty() {
            line += &format!("; {}", self.note);
        }
        let mut lines = vec![line];
        let told = self.faults.iter().take(MOST_TOLD);
        lines.extend(told.map(|fault| format!("        {fault}")));
        let untold = self.fault_count.saturating_sub(MOST_TOLD as u64);
        if untold > 0 {
            lines.push(format!("        and {untold} more"));
        }
        lines
    }

    pub fn as_json(&self) -> Value {
        json!({
            "check": self.check,
            "sound": self.is_sound(),
            "skipped": self.skipped,
            "compared": self.compared,
            "of": self.of,
            "fault_count": self.fault_count,
            "faults": self.faults,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_up_to_a_number_and_counted_beyond() {
        let mut findings = Findings::new("borders", "borders");
        findings.compared(40);
        assert_eq!(findings.lines(), ["ok      borders       40 borders"]);
        (0..25).for_each(|i| findings.expect(false, || format!("border {i}")));
        let lines = findings.lines();
        assert_eq!(lines.len(), 1 + MOST_TOLD + 1);
        assert_eq!(lines[0], "FAILED  borders       40 borders");
        assert_eq!(lines[MOST_TOLD + 1].trim(), "and 20 more");
        let json = findings.as_json();
        assert_eq!(json["fault_count"], 25);
        assert_eq!(json["faults"].as_array().map(Vec::len), Some(MOST_KEPT));
        let skipped = Findings::skipped("heights", "heights", "they need a file");
        assert_eq!(
            skipped.lines(),
            ["skipped heights       0 heights; they need a file"]
        );
    }
}
