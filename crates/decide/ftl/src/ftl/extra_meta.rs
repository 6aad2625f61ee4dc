//! A page of metadata that some superblocks hold beside the others.
//!
//! For: separations whose metadata fill a fraction of a page per superblock. Must never know: what
//! the metadata say, which superblock. Units: pages per superblock.

/// Superblocks among all that hold one page of metadata more, in turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtraMetaPage {
    /// Of all superblocks, from 0 to below 1.
    share: f64,
    /// How much of a page is due.
    due: f64,
}

impl ExtraMetaPage {
    /// Such a page in this share of all superblocks.
    pub(super) fn new(share: f64) -> ExtraMetaPage {
        ExtraMetaPage { share, due: 0.0 }
    }

    /// Whether the superblock that is opened now holds one; asked once for each.
    pub(super) fn take_due(&mut self) -> bool {
        self.due += self.share;
        let holds = self.due >= 1.0;
        self.due -= f64::from(u8::from(holds));
        holds
    }

    /// Whether no superblock ever holds one.
    pub(super) fn never(&self) -> bool {
        self.share == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_superblocks_is_every_fourth() {
        let mut extra = ExtraMetaPage::new(0.25);
        let due: Vec<bool> = (0..8).map(|_| extra.take_due()).collect();
        assert_eq!(due, [false, false, false, true, false, false, false, true]);
        assert!(ExtraMetaPage::new(0.0).never() && !extra.never());
    }
}
