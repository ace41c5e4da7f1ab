//! The real window, under a virtual display: keys, overlay, resizing, minimising, closing.
//!
//! Xvfb is the display, openbox the window manager (minimising and closing are its business),
//! xdotool the user; captures are taken from the display itself and compared.

use highfell::compile::compile;
use highfell::files;
use highfell::modes::builtin;
use highfell::terrain::flight::Flight;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt, ImageFormat};
use x11rb::rust_connection::RustConnection;

/// Long, since other tests draw on the same cores meanwhile.
const PATIENCE: Duration = Duration::from_secs(180);
/// Columns of the window that the panel never covers.
const SCENE_LEFT: u32 = 460;

#[test]
fn a_user_flies_looks_resizes_minimises_and_closes() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("small.hfw");
    let (writer, _) = compile(&builtin::source(513), &builtin::options(), |_| Ok(())).unwrap();
    files::write_world(&world, false, writer).unwrap();

    let flight = folder.path().join("flight.json");
    let display = Display::start();
    let mut program = display
        .command(env!("CARGO_BIN_EXE_highfell"))
        .args([
            "fly",
            world.to_str().unwrap(),
            "--adapter",
            "software",
            "--no-water",
            // All below is done after everything was made again.
            "--lose-device-after",
            "5",
            "--record",
            flight.to_str().unwrap(),
        ])
        .env("XDG_CACHE_HOME", folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let window = display.find_window(&mut program);
    let first = display.settled(&window);
    assert!(
        first.colours(SCENE_LEFT) > 500,
        "mountains, sea floor and sky have many colours"
    );

    let as_first = |now: &Capture| now.difference(&first, SCENE_LEFT) < 0.001;
    let moved = |now: &Capture| now.difference(&first, SCENE_LEFT) > 0.1;

    // The overlay: its dark panel goes with H and comes back.
    assert!(
        first.dark_share(0, 300) > 0.5,
        "the panel is dark and on the left"
    );
    display.key("h");
    let bare = display.until(&window, "the panel goes", |now| {
        now.dark_share(0, 300) < 0.3
    });
    display.key("h");
    display.until(&window, "the panel comes back", |now| {
        now.dark_share(0, 300) > 0.5
    });
    assert!(as_first(&bare), "the scene behind it stays as it was");

    // Z: wireframe, and back to the very same picture.
    display.key("z");
    let wire = display.until(&window, "the wireframe comes", |now| {
        now.difference(&first, SCENE_LEFT) > 0.3
    });
    assert!(wire.colours(SCENE_LEFT) > 50);
    display.key("z");
    display.until(&window, "the shaded ground comes back", as_first);

    // F1: the help covers part of the scene, and goes.
    display.key("F1");
    display.until(&window, "the help comes", |now| {
        now.difference(&first, SCENE_LEFT) > 0.05
    });
    display.key("F1");
    display.until(&window, "the help goes", as_first);

    // W flies, Home goes back.
    display.xdotool(&["keydown", "w"]);
    std::thread::sleep(Duration::from_millis(1500));
    display.xdotool(&["keyup", "w"]);
    display.until(&window, "the camera moves", moved);
    display.key("Home");
    display.until(&window, "the camera goes home", as_first);

    // The right mouse button looks around.
    display.xdotool(&[
        "mousemove",
        "--window",
        &window.id,
        "800",
        "400",
        "mousedown",
        "3",
    ]);
    for _ in 0..10 {
        display.xdotool(&["mousemove_relative", "--sync", "15", "0"]);
    }
    display.xdotool(&["mouseup", "3"]);
    display.until(&window, "the mouse looks around", moved);
    display.key("Home");
    display.until(&window, "the camera goes home again", as_first);

    // A smaller window is filled to its last corner, and the old size brings the old picture.
    display.xdotool(&["windowsize", "--sync", &window.id, "900", "600"]);
    let small = display.until(&window, "the window shrinks", |now| {
        now.size == [900, 600] && now.corner_is_drawn()
    });
    assert!(small.colours(SCENE_LEFT) > 300);
    display.xdotool(&["windowsize", "--sync", &window.id, "1280", "720"]);
    display.until(&window, "the window grows", |now| {
        now.size == first.size && as_first(now)
    });

    // Minimised it draws nothing and lives; raised again it shows the same.
    display.xdotool(&["windowminimize", "--sync", &window.id]);
    std::thread::sleep(Duration::from_secs(1));
    assert!(
        program.try_wait().unwrap().is_none(),
        "it lives on while minimised"
    );
    display.xdotool(&["windowmap", "--sync", &window.id]);
    display.xdotool(&["windowactivate", &window.id]);
    display.until(&window, "the window comes back", as_first);

    display.key("alt+F4");
    let code = wait_for_end(&mut program);
    let mut stderr = String::new();
    std::io::Read::read_to_string(&mut program.stderr.take().unwrap(), &mut stderr).unwrap();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    let lost = stderr.matches("everything on it is made again").count();
    assert_eq!(lost, 1, "{stderr}");

    // All of it was written down: it went somewhere and came back.
    let written = std::fs::read_to_string(&flight).expect("the recorded flight");
    let flight = Flight::from_json(&written).expect("a flight");
    let [first, last] = [0.0, flight.seconds()].map(|seconds| flight.at(seconds).eye);
    let way = (0..1000).map(|i| flight.at(flight.seconds() * 0.001 * f64::from(i)).eye);
    let farthest_m = way.map(|eye| eye.distance(first)).fold(0.0, f64::max);
    assert!(farthest_m > 10.0, "only {farthest_m} m");
    assert_eq!(first, last, "Home");
}

/// A virtual display with a window manager on it; both end with it.
struct Display {
    name: String,
    connection: RustConnection,
    servers: Vec<Child>,
}

struct WindowRef {
    id: String,
}

/// What a window shows: four bytes a pixel as the display stores them, blue first.
struct Capture {
    size: [u32; 2],
    pixels: Vec<[u8; 4]>,
}

impl Display {
    fn start() -> Self {
        let mut server = spawn(
            Command::new("Xvfb")
                .args([
                    "-displayfd",
                    "1",
                    "-screen",
                    "0",
                    "1600x1000x24",
                    "-nolisten",
                    "tcp",
                ])
                .stdout(Stdio::piped()),
        );
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap())
            .read_line(&mut number)
            .unwrap();
        let name = format!(":{}", number.trim());
        let (connection, _) = x11rb::connect(Some(&name)).expect("the virtual display answers");
        let mut display = Display {
            name,
            connection,
            servers: vec![server],
        };
        let manager = spawn(display.command("openbox").arg("--sm-disable"));
        display.servers.push(manager);
        display.wait_for_manager();
        display
    }

    /// A window manager announces itself on the root window.
    fn wait_for_manager(&self) {
        let start = Instant::now();
        let root = self.connection.setup().roots[0].root;
        let atom = self
            .connection
            .intern_atom(false, b"_NET_SUPPORTING_WM_CHECK")
            .unwrap()
            .reply()
            .unwrap()
            .atom;
        while start.elapsed() < PATIENCE {
            let property = self
                .connection
                .get_property(false, root, atom, AtomEnum::WINDOW, 0, 1)
                .unwrap()
                .reply();
            if property.is_ok_and(|property| property.value_len > 0) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no window manager within {PATIENCE:?}");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("DISPLAY", &self.name)
            .env_remove("WAYLAND_DISPLAY")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn find_window(&self, program: &mut Child) -> WindowRef {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let output = self
                .command("xdotool")
                .args(["search", "--onlyvisible", "--name", "^Highfell: small.hfw$"])
                .stdout(Stdio::piped())
                .output()
                .unwrap();
            if let Some(id) = String::from_utf8_lossy(&output.stdout).lines().next() {
                self.xdotool(&["windowactivate", "--sync", id]);
                return WindowRef { id: id.to_owned() };
            }
            if let Some(status) = program.try_wait().unwrap() {
                let mut stderr = String::new();
                std::io::Read::read_to_string(&mut program.stderr.take().unwrap(), &mut stderr)
                    .unwrap();
                panic!("the program ended with {status} before it opened a window: {stderr}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no window within {PATIENCE:?}");
    }

    fn xdotool(&self, arguments: &[&str]) {
        let status = spawn(self.command("xdotool").args(arguments))
            .wait()
            .unwrap();
        assert!(status.success(), "xdotool {arguments:?}");
    }

    fn key(&self, key: &str) {
        self.xdotool(&["key", key]);
    }

    /// What the window shows, or nothing while it is not there.
    fn capture(&self, window: &WindowRef) -> Option<Capture> {
        let id: u32 = window.id.parse().unwrap();
        let geometry = self.connection.get_geometry(id).ok()?.reply().ok()?;
        let (width, height) = (geometry.width, geometry.height);
        let image = self
            .connection
            .get_image(ImageFormat::Z_PIXMAP, id, 0, 0, width, height, !0)
            .ok()?
            .reply()
            .ok()?;
        let pixels = image
            .data
            .chunks_exact(4)
            .map(|pixel| pixel.try_into().unwrap())
            .collect();
        self.connection.flush().ok()?;
        Some(Capture {
            size: [width as u32, height as u32],
            pixels,
        })
    }

    /// Waits until the window shows what is expected.
    fn until(
        &self,
        window: &WindowRef,
        what: &str,
        is_there: impl Fn(&Capture) -> bool,
    ) -> Capture {
        let start = Instant::now();
        let mut last = None;
        while start.elapsed() < PATIENCE {
            if let Some(capture) = self.capture(window) {
                if is_there(&capture) {
                    return capture;
                }
                last = Some(capture);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let left = last.map(|capture| capture.save("window-failure.new.png"));
        panic!("{what}: not within {PATIENCE:?}; the last capture is {left:?}");
    }

    /// The picture once streaming and fading are over: the scene stays the same for a second.
    fn settled(&self, window: &WindowRef) -> Capture {
        let start = Instant::now();
        let mut last = self.until(window, "the window is drawn", |now| {
            now.colours(SCENE_LEFT) > 100
        });
        let mut since = Instant::now();
        while start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(100));
            let Some(now) = self.capture(window) else {
                continue;
            };
            if now.size != last.size || now.difference(&last, SCENE_LEFT) > 0.0 {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > Duration::from_secs(2) {
                return now;
            }
        }
        panic!("the picture does not come to rest within {PATIENCE:?}");
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        for server in self.servers.iter_mut().rev() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Capture {
    /// Pixels from a column on.
    fn columns_from(&self, left: u32) -> impl Iterator<Item = &[u8; 4]> {
        let width = self.size[0];
        (0..)
            .zip(&self.pixels)
            .filter(move |(i, _)| i % width >= left)
            .map(|(_, pixel)| pixel)
    }

    /// Share of the pixels from a column on that differ by more than a hair; 1 when sizes differ.
    fn difference(&self, other: &Capture, left: u32) -> f64 {
        if self.size != other.size {
            return 1.0;
        }
        let pairs = self.columns_from(left).zip(other.columns_from(left));
        let differs = |(a, b): &(&[u8; 4], &[u8; 4])| (0..3).any(|i| a[i].abs_diff(b[i]) > 2);
        let count = self.columns_from(left).count();
        pairs.filter(differs).count() as f64 / count as f64
    }

    fn colours(&self, left: u32) -> usize {
        let colours: std::collections::HashSet<_> = self.columns_from(left).collect();
        colours.len()
    }

    /// Share of nearly black pixels between two columns.
    fn dark_share(&self, left: u32, right: u32) -> f64 {
        let width = self.size[0];
        let pixels = (0..)
            .zip(&self.pixels)
            .filter(|(i, _)| (left..right).contains(&(i % width)));
        let (mut dark, mut all) = (0, 0);
        for (_, pixel) in pixels {
            all += 1;
            dark += pixel[..3].iter().all(|&value| value < 40) as u32;
        }
        dark as f64 / all as f64
    }

    fn corner_is_drawn(&self) -> bool {
        self.pixels
            .last()
            .is_some_and(|pixel| pixel[..3].iter().any(|&value| value > 0))
    }

    fn save(&self, name: &str) -> std::path::PathBuf {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests")
            .join(name);
        let rgb = self
            .pixels
            .iter()
            .flat_map(|[b, g, r, _]| [*r, *g, *b])
            .collect();
        image::RgbImage::from_raw(self.size[0], self.size[1], rgb)
            .unwrap()
            .save(&path)
            .unwrap();
        path
    }
}

fn wait_for_end(program: &mut Child) -> Option<i32> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(status) = program.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    program.kill().unwrap();
    panic!("the program does not end within {PATIENCE:?}");
}

fn spawn(command: &mut Command) -> Child {
    command.spawn().unwrap_or_else(|error| {
        panic!(
            "{:?}: {error}; scripts/test installs what the tests need (xvfb, xdotool, openbox)",
            command.get_program()
        )
    })
}
