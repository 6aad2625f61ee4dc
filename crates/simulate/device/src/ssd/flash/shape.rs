//! The shape of a flash device: how many channels, chips, dies, planes, blocks and pages.
//!
//! For: addresses and orders of planes. Must never know: timing. Units: pages, bytes.

/// Planes of a die that one command may address at most.
pub const MAX_PLANES: u32 = 16;

/// How many of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashShape {
    /// Channels.
    pub channels: u32,
    /// Chips on a channel.
    pub chips_per_channel: u32,
    /// Dies of a chip.
    pub dies_per_chip: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Erase blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of an erase block.
    pub pages_per_block: u32,
    /// Bytes of data in a page.
    pub page_bytes: u32,
    /// Bytes of a sector; a page holds at most 64.
    pub sector_bytes: u32,
}

impl FlashShape {
    /// Planes of the device.
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Dies of the device.
    pub fn dies(&self) -> u32 {
        self.chips() * self.dies_per_chip
    }

    /// Chips of the device.
    pub fn chips(&self) -> u32 {
        self.channels * self.chips_per_channel
    }

    /// Pages of a plane.
    pub fn plane_pages(&self) -> u32 {
        self.blocks_per_plane * self.pages_per_block
    }
}
