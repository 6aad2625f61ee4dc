//! The time of a channel: commands, addresses and data.
//!
//! For: nanoseconds on the bus for one command of 1 to 4 planes. Must never know: queues, dies.
//! Source: ONFI 4.0, NV-DDR2, summed up as by MQSim: command cycles of 25 ns, chip select 20 ns,
//! busy after a command 100 ns. Address to data takes 70 ns, dummy busy between planes 500 ns.

/// Times on a channel, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Read command of one plane.
    pub read_command_ns: u64,
    /// Each further plane of it.
    pub read_more_planes_ns: u64,
    /// Program command of one plane, without data.
    pub program_command_ns: u64,
    /// Each further plane of it.
    pub program_more_planes_ns: u64,
    /// Erase command of one plane.
    pub erase_command_ns: u64,
    /// Each further plane of it.
    pub erase_more_planes_ns: u64,
    /// Command that halts a program or erase.
    pub suspend_command_ns: u64,
    /// From the end of sensing to the data.
    pub ready_ns: u64,
    /// Bytes that cross in one cycle of the strobe.
    pub unit_bytes: u32,
    /// Picoseconds of that cycle.
    pub unit_ps: u64,
}

impl Bus {
    /// A bus of so many million transfers per second and bytes of width. A transfer is cut to whole
    /// nanoseconds as in MQSim (333 MT/s are 3 ns).
    pub fn mqsim(rate_mts: u32, width_bytes: u32) -> Bus {
        let transfer_ns = u64::from(1000 / rate_mts.clamp(1, 1000)).max(1);
        Bus { unit_ps: 2000 * transfer_ns, ..Bus::exact(rate_mts, width_bytes) }
    }

    /// A bus of so many million transfers per second and bytes of width.
    pub fn exact(rate_mts: u32, width_bytes: u32) -> Bus {
        Bus {
            read_command_ns: 290,
            read_more_planes_ns: 650,
            program_command_ns: 361,
            program_more_planes_ns: 816,
            erase_command_ns: 220,
            erase_more_planes_ns: 700,
            suspend_command_ns: 95,
            ready_ns: 20,
            unit_bytes: 2 * width_bytes.max(1),
            unit_ps: 2_000_000 / u64::from(rate_mts.max(1)),
        }
    }

    /// Data of one page or part.
    #[inline]
    pub fn data_ns(&self, bytes: u32) -> u64 {
        let units = u64::from(bytes.div_ceil(self.unit_bytes));
        // Whole nanoseconds per unit, as in MQSim's timing, need no division.
        if self.unit_ps.is_multiple_of(1000) {
            units * (self.unit_ps / 1000)
        } else {
            (units * self.unit_ps).div_ceil(1000)
        }
    }

    /// A read command of so many planes.
    #[inline]
    pub fn read_ns(&self, planes: u32) -> u64 {
        self.read_command_ns + u64::from(planes - 1) * self.read_more_planes_ns
    }

    /// A program command of so many planes, without their data.
    #[inline]
    pub fn program_ns(&self, planes: u32) -> u64 {
        self.program_command_ns + u64::from(planes - 1) * self.program_more_planes_ns
    }

    /// An erase command of so many planes.
    #[inline]
    pub fn erase_ns(&self, planes: u32) -> u64 {
        self.erase_command_ns + u64::from(planes - 1) * self.erase_more_planes_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the reference: commands of 1 to 4 planes, 4 KiB and 8 KiB of data.
    #[test]
    fn the_bus_of_the_reference() {
        let bus = Bus::mqsim(333, 1);
        assert_eq!([1, 2, 3, 4].map(|planes| bus.read_ns(planes)), [290, 940, 1590, 2240]);
        assert_eq!([1, 2].map(|planes| bus.program_ns(planes)), [361, 1177]);
        assert_eq!(bus.erase_ns(1), 220);
        assert_eq!([512, 4096, 8192].map(|bytes| bus.data_ns(bytes)), [1536, 12_288, 24_576]);
        assert_eq!(Bus::exact(333, 1).data_ns(8192), 24_601, "8192 transfers of 3.003 ns");
        assert_eq!(Bus::exact(1200, 1).data_ns(4096), 3412);
    }
}
