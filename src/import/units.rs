//! Units of length, by EPSG code and by the names that files use.

const US_FOOT_M: f64 = 1200.0 / 3937.0;

/// Metres a unit, by its code in the EPSG registry.
pub(super) fn by_code(code: u16) -> Option<f64> {
    match code {
        9001 => Some(1.0),
        9002 => Some(0.3048),
        9003 => Some(US_FOOT_M),
        1025 => Some(0.001),
        1033 => Some(0.01),
        9014 => Some(1.8288),
        9036 => Some(1000.0),
        9093 => Some(1609.344),
        9095 => Some(0.3048007491),
        _ => None,
    }
}

/// Metres a unit, by one of its names in any case.
pub(super) fn by_name(name: &str) -> Option<f64> {
    match name.trim().to_ascii_lowercase().as_str() {
        "m" | "metre" | "metres" | "meter" | "meters" => Some(1.0),
        "ft" | "foot" | "feet" | "international foot" => Some(0.3048),
        "us-ft" | "ftus" | "us_ft" | "us survey foot" | "us survey feet" | "foot_us" => {
            Some(US_FOOT_M)
        }
        "dm" | "decimetre" | "decimeter" => Some(0.1),
        "cm" | "centimetre" | "centimeter" => Some(0.01),
        "mm" | "millimetre" | "millimeter" => Some(0.001),
        "km" | "kilometre" | "kilometer" => Some(1000.0),
        "fathom" | "fathoms" => Some(1.8288),
        _ => None,
    }
}

/// What a person calls the unit with that code.
pub(super) fn name_of(code: u16) -> String {
    match code {
        9002 => "feet".to_owned(),
        9003 => "US survey feet".to_owned(),
        9105 => "grads".to_owned(),
        32767 => "a unit of the writer's own".to_owned(),
        other => format!("the unit EPSG:{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feet_are_told_apart() {
        assert_eq!(by_code(9002), by_name("FEET"));
        assert_eq!(by_code(9003), by_name("US survey foot"));
        assert_ne!(by_name("ft"), by_name("us-ft"));
        assert_eq!((by_code(32767), by_name("cubit")), (None, None));
    }
}
