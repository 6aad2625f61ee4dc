//! Where the time of a command went, by part.
//!
//! For: every device model, and tables of response times. Must never know: commands, any model.
//! Units: nanoseconds of simulated time.

/// Where the time of a command went; the parts of [`Spent`], in the order of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SpentPart {
    /// Waiting in a queue of the host interface or the device's scheduler.
    Queue = 0,
    /// On the link between host and device.
    Link = 1,
    /// In the device's memory: its transfer and the wait for it.
    Dram = 2,
    /// For an entry of the mapping table that had to be read from flash.
    Map = 3,
    /// Waiting for a channel, and on it.
    Channel = 4,
    /// Waiting for a die that works for another host command.
    DieWait = 5,
    /// Waiting for a die that cleans.
    CleanWait = 6,
    /// Sensing, programming or erasing flash.
    Flash = 7,
    /// Moving a disk's arm.
    Seek = 8,
    /// Waiting for a disk's sector to come round.
    Rotation = 9,
    /// Between medium and buffer of a disk.
    Transfer = 10,
    /// For a segment of a log that is still to be cleaned and reset.
    Segment = 11,
}

impl SpentPart {
    /// All parts, in the order of their numbers.
    pub const ALL: [SpentPart; 12] = [
        SpentPart::Queue,
        SpentPart::Link,
        SpentPart::Dram,
        SpentPart::Map,
        SpentPart::Channel,
        SpentPart::DieWait,
        SpentPart::CleanWait,
        SpentPart::Flash,
        SpentPart::Seek,
        SpentPart::Rotation,
        SpentPart::Transfer,
        SpentPart::Segment,
    ];

    /// The word used in tables and files.
    pub fn word(self) -> &'static str {
        match self {
            SpentPart::Queue => "queue",
            SpentPart::Link => "link",
            SpentPart::Dram => "dram",
            SpentPart::Map => "map miss",
            SpentPart::Channel => "channel",
            SpentPart::DieWait => "die wait",
            SpentPart::CleanWait => "cleaning wait",
            SpentPart::Flash => "flash",
            SpentPart::Seek => "seek",
            SpentPart::Rotation => "rotation",
            SpentPart::Transfer => "transfer",
            SpentPart::Segment => "segment wait",
        }
    }
}

/// Nanoseconds of one command by [`SpentPart`], along the path that ended last; they add up to the
/// time between submission and completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// By the number of the part.
    pub parts_ns: [u64; SpentPart::ALL.len()],
}

impl Spent {
    /// Adds time to a part.
    pub fn add(&mut self, part: SpentPart, time_ns: u64) {
        self.parts_ns[part as usize] += time_ns;
    }

    /// The time of a part.
    pub fn part_ns(&self, part: SpentPart) -> u64 {
        self.parts_ns[part as usize]
    }

    /// Adds the time of what came next.
    pub fn then(&mut self, next: &Spent) {
        for (sum, part) in self.parts_ns.iter_mut().zip(&next.parts_ns) {
            *sum += part;
        }
    }

    /// The sum of all parts.
    pub fn total_ns(&self) -> u64 {
        self.parts_ns.iter().sum()
    }
}
