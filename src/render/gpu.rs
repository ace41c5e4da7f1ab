//! The adapter, the device, and the surface of a window.

use crate::error::{Error, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// Which adapter the user asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AdapterChoice {
    /// The fastest kind there is.
    #[default]
    Best,
    /// A software adapter: the same pictures on every machine.
    Software,
    /// One whose name contains this text.
    Named(String),
}

impl std::str::FromStr for AdapterChoice {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        Ok(match text {
            "best" => AdapterChoice::Best,
            "software" => AdapterChoice::Software,
            name => AdapterChoice::Named(name.to_owned()),
        })
    }
}

/// What one call for many draws takes.
const MULTI_DRAW: wgpu::Features = wgpu::Features::INDIRECT_FIRST_INSTANCE;

/// An open device.
pub struct Gpu {
    pub(super) device: wgpu::Device,
    pub(super) queue: wgpu::Queue,
    adapter: wgpu::Adapter,
    /// The first error that no call returned.
    first_error: Arc<Mutex<Option<String>>>,
    /// Why there is no device any more.
    lost: Arc<Mutex<Option<String>>>,
}

impl Gpu {
    /// Opens a device that draws without a window.
    pub fn open(choice: &AdapterChoice) -> Result<Self> {
        let adapter = pick(headless_adapters(), choice)?;
        Self::open_adapter(adapter)
    }

    /// Opens a device and the surface of a window.
    pub fn open_window(
        window: impl Into<wgpu::SurfaceTarget<'static>>,
        display: impl wgpu::rwh::HasDisplayHandle + std::fmt::Debug + Send + Sync + 'static,
        size: [u32; 2],
        choice: &AdapterChoice,
    ) -> Result<(Self, WindowSurface)> {
        let descriptor =
            wgpu::InstanceDescriptor::new_with_display_handle_from_env(Box::new(display));
        let backends = descriptor.backends;
        let instance = wgpu::Instance::new(descriptor);
        let surface = instance.create_surface(window).map_err(|error| {
            Error::Gpu(format!(
                "the window cannot be drawn to: {}",
                one_line(&error)
            ))
        })?;
        let mut adapters = pollster::block_on(instance.enumerate_adapters(backends));
        adapters.retain(|adapter| adapter.is_surface_supported(&surface));
        let gpu = Self::open_adapter(pick(adapters, choice)?)?;
        let surface = WindowSurface::new(&gpu, surface, size)?;
        Ok((gpu, surface))
    }

    /// Name, kind, backend and driver of the adapter.
    pub fn describe(&self) -> String {
        describe(&self.adapter)
    }

    /// Whether the processor does the drawing.
    pub fn is_software(&self) -> bool {
        self.adapter.get_info().device_type == wgpu::DeviceType::Cpu
    }

    /// Whether everything asked of the device so far was done.
    pub fn check(&self) -> Result<()> {
        let first = self
            .first_error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        first.map_or(Ok(()), |error| {
            Err(Error::Gpu(format!("{}: {error}", self.describe())))
        })
    }

    /// Whether one call draws many things.
    pub(super) fn draws_many(&self) -> bool {
        let flags = self.adapter.get_downlevel_capabilities().flags;
        self.device.features().contains(MULTI_DRAW)
            && flags.contains(wgpu::DownlevelFlags::INDIRECT_EXECUTION)
    }

    /// Why the device is gone, if it is: a driver that was updated or hung, an adapter that was
    /// unplugged. Everything made with it must be made again with another one.
    pub fn lost(&self) -> Option<String> {
        // Nobody else asks it between frames in which nothing is drawn.
        let _ = self.device.poll(wgpu::PollType::Poll);
        let lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.clone()
    }

    /// Loses the device, as a driver might, so that it can be tested what happens then.
    pub fn lose(&self) {
        self.device.destroy();
    }

    /// Whether depth that is not written by fragments loses what reversing it gains.
    pub(super) fn loses_depth(&self) -> bool {
        self.adapter.get_info().backend == wgpu::Backend::Gl
    }

    /// Waits until the GPU has done all that it was asked for.
    pub fn wait(&self) -> Result<()> {
        let done = self.device.poll(wgpu::PollType::wait_indefinitely());
        done.map_err(|error| Error::Gpu(format!("{}: {error}", self.describe())))?;
        self.check()
    }

    fn open_adapter(adapter: wgpu::Adapter) -> Result<Self> {
        let limits = adapter.limits();
        let required_limits = wgpu::Limits {
            max_texture_dimension_2d: limits.max_texture_dimension_2d.min(8192),
            max_buffer_size: limits.max_buffer_size.min(1 << 30),
            max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size.min(1 << 30),
            ..wgpu::Limits::downlevel_defaults()
        };
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("highfell"),
            required_features: adapter.features() & (MULTI_DRAW | wgpu::Features::TIMESTAMP_QUERY),
            required_limits,
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| Error::Gpu(format!("{}: {}", describe(&adapter), one_line(&error))))?;
        let first_error = Arc::new(Mutex::new(None));
        let remembered = first_error.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            let text = one_line(&error);
            let mut first = remembered.lock().unwrap_or_else(PoisonError::into_inner);
            // Others follow from it, one a call.
            if first.is_none() {
                log::error!("GPU: {text}");
            }
            first.get_or_insert(text);
        }));
        let lost = Arc::new(Mutex::new(None));
        let remembered = lost.clone();
        device.set_device_lost_callback(move |reason, text| {
            let text = format!("{reason:?}: {}", text.replace('\n', " "));
            let mut lost = remembered.lock().unwrap_or_else(PoisonError::into_inner);
            lost.get_or_insert(text);
        });
        Ok(Gpu {
            device,
            queue,
            adapter,
            first_error,
            lost,
        })
    }
}

/// Every adapter, one line each.
pub fn list_adapters() -> Vec<String> {
    headless_adapters().iter().map(describe).collect()
}

/// A window's surface and how it is configured.
pub struct WindowSurface {
    surface: wgpu::Surface<'static>,
    config: wgpu::SurfaceConfiguration,
}

/// One picture of a window, to be drawn and shown.
pub struct WindowFrame(pub(super) wgpu::SurfaceTexture);

impl WindowSurface {
    fn new(gpu: &Gpu, surface: wgpu::Surface<'static>, size: [u32; 2]) -> Result<Self> {
        let cannot = || Error::Gpu(format!("{} cannot draw to this window", gpu.describe()));
        let mut config = surface
            .get_default_config(&gpu.adapter, size[0].max(1), size[1].max(1))
            .ok_or_else(cannot)?;
        let formats = surface.get_capabilities(&gpu.adapter).formats;
        // Shaders encode colours themselves, so the target must not do it again.
        config.format = formats
            .iter()
            .copied()
            .find(|format| !format.is_srgb())
            .ok_or_else(cannot)?;
        config.usage |= wgpu::TextureUsages::RENDER_ATTACHMENT;
        let this = WindowSurface { surface, config };
        this.configure(gpu);
        Ok(this)
    }

    pub fn size(&self) -> [u32; 2] {
        [self.config.width, self.config.height]
    }

    /// Follows the window; a size of 0 (minimised) is left alone.
    pub fn resize(&mut self, gpu: &Gpu, size: [u32; 2]) {
        if size[0] > 0 && size[1] > 0 && size != self.size() {
            [self.config.width, self.config.height] = size;
            self.configure(gpu);
        }
    }

    /// The next picture to draw, or none when there is nothing to draw to just now.
    pub fn next_frame(&mut self, gpu: &Gpu) -> Option<WindowFrame> {
        match self.surface.get_current_texture() {
            wgpu::CurrentSurfaceTexture::Success(texture)
            | wgpu::CurrentSurfaceTexture::Suboptimal(texture) => Some(WindowFrame(texture)),
            wgpu::CurrentSurfaceTexture::Outdated | wgpu::CurrentSurfaceTexture::Lost => {
                self.configure(gpu);
                None
            }
            _ => None,
        }
    }

    pub fn show(&self, gpu: &Gpu, frame: WindowFrame) {
        gpu.queue.present(frame.0);
    }

    pub(super) fn format(&self) -> wgpu::TextureFormat {
        self.config.format
    }

    fn configure(&self, gpu: &Gpu) {
        self.surface.configure(&gpu.device, &self.config);
    }
}

/// Vulkan, Metal or DX12 where there is one, else GL: asking for GL without a display is noisy.
fn headless_adapters() -> Vec<wgpu::Adapter> {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
    let backends = descriptor.backends;
    for only in [
        wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12,
        wgpu::Backends::GL,
    ] {
        let backends = backends & only;
        if backends.is_empty() {
            continue;
        }
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle_from_env();
        descriptor.backends = backends;
        let instance = wgpu::Instance::new(descriptor);
        let adapters = pollster::block_on(instance.enumerate_adapters(backends));
        if !adapters.is_empty() {
            return adapters;
        }
    }
    Vec::new()
}

fn pick(adapters: Vec<wgpu::Adapter>, choice: &AdapterChoice) -> Result<wgpu::Adapter> {
    if adapters.is_empty() {
        return Err(Error::Gpu(
            "no GPU adapter found, not even a software one; on Debian or Ubuntu: sudo apt-get install mesa-vulkan-drivers libvulkan1".into(),
        ));
    }
    let names: Vec<String> = adapters.iter().map(describe).collect();
    let fits = |adapter: &wgpu::Adapter| match choice {
        AdapterChoice::Best => true,
        AdapterChoice::Software => adapter.get_info().device_type == wgpu::DeviceType::Cpu,
        AdapterChoice::Named(name) => describe(adapter)
            .to_lowercase()
            .contains(&name.to_lowercase()),
    };
    let best = adapters
        .into_iter()
        .filter(fits)
        .min_by_key(|adapter| rank(adapter.get_info().device_type));
    best.ok_or_else(|| {
        let wanted = match choice {
            AdapterChoice::Named(name) => format!("no adapter is called '{name}'"),
            _ => "no software adapter (sudo apt-get install mesa-vulkan-drivers)".into(),
        };
        Error::Gpu(format!("{wanted}; there are: {}", names.join("; ")))
    })
}

fn rank(kind: wgpu::DeviceType) -> u32 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

fn describe(adapter: &wgpu::Adapter) -> String {
    let info = adapter.get_info();
    let kind = match info.device_type {
        wgpu::DeviceType::Cpu => "software",
        wgpu::DeviceType::IntegratedGpu => "integrated",
        wgpu::DeviceType::DiscreteGpu => "discrete",
        wgpu::DeviceType::VirtualGpu => "virtual",
        wgpu::DeviceType::Other => "unknown kind",
    };
    format!(
        "{} ({kind}, {:?}, {})",
        info.name, info.backend, info.driver_info
    )
}

fn one_line(error: &dyn std::error::Error) -> String {
    error.to_string().replace('\n', " ")
}
