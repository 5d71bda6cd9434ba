//! Decisions of those who free memory, and of those who wait for it: small machines whose `step`
//! says what to do next. Who does it, pays for it and waits is the driver of the same name.

pub mod balance;
pub mod charge;
pub mod pause;
pub mod priority;
pub mod retry;

#[cfg(test)]
mod tests {
    use units::Pages;

    use crate::event::NoTrace;
    use crate::feature::Kernel;
    use crate::memory::Memory;
    use crate::sysctl::Sysctls;
    use crate::zone::MemoryLayout;

    /// 64 MiB, all of it free, for the scripts of the machines.
    pub(super) fn machine(kernel: &str) -> Memory<NoTrace> {
        let layout = MemoryLayout::flat(Pages(16_384), 1);
        Memory::boot(&layout, Kernel::parse(kernel).unwrap(), Sysctls::default(), NoTrace).unwrap()
    }
}
