# Sourced by scripts/fly and scripts/test: installs system packages that are missing.

say() { printf '%s\n' "$*" >&2; }

# What the window and the GPU driver are opened through at run time, and a C compiler to build with.
RUN_PACKAGES="libvulkan1 mesa-vulkan-drivers libx11-6 libx11-xcb1 libxcursor1 libxi6 libxrandr2
  libxcb1 libxkbcommon0 libxkbcommon-x11-0 libwayland-client0 gcc libc6-dev"
# What the tests drive a real window with.
TEST_PACKAGES="xvfb xdotool openbox libegl1 libgl1-mesa-dri"

install_missing() {
  if ! command -v cargo >/dev/null; then
    say "Rust is missing: install it from https://rustup.rs and run this again."
    exit 2
  fi
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    case "$(uname -s)" in
      Darwin) ;;
      *) say "On this system nothing is installed for you. Needed: a Vulkan loader and driver (Mesa), a C compiler," \
             "the X11, Wayland and xkbcommon client libraries${1:+; for the tests also Xvfb, xdotool, openbox and EGL}." ;;
    esac
    return
  fi
  missing=""
  for package in $RUN_PACKAGES ${1:+$TEST_PACKAGES}; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  sudo=""
  if [ "$(id -u)" != 0 ]; then
    sudo=sudo
    if ! command -v sudo >/dev/null; then
      say "Missing packages, and no sudo to install them. As root: apt-get install$missing"
      exit 2
    fi
  fi
  say "Installing:$missing"
  $sudo apt-get update -qq >&2
  # shellcheck disable=SC2086
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >&2
}

# Mesa complains on every start where this is not set.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-${TMPDIR:-/tmp}}"
