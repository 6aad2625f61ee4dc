//! Many doubly linked lists over one set of dense ids; each id is in at most one list.
//!
//! For: superblocks by seal order and by invalid pages, all operations O(1). Must never know: what
//! an id stands for. Memory: 8 bytes per id and per list.

/// No id.
const NIL: u32 = u32::MAX;

/// Lists of ids; their owner remembers which list an id is in.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// Before and behind each id.
    links: Vec<[u32; 2]>,
    /// First and last of each list.
    ends: Vec<[u32; 2]>,
}

impl Lists {
    /// So many empty lists, no ids.
    pub fn new(lists: usize) -> Lists {
        Lists { links: Vec::new(), ends: vec![[NIL; 2]; lists] }
    }

    /// Adds one id.
    pub fn grow(&mut self) {
        self.links.push([NIL; 2]);
    }

    /// Bytes of ids and lists.
    pub fn held_bytes(&self) -> usize {
        size_of_val(self.links.as_slice()) + size_of_val(self.ends.as_slice())
    }

    /// The first of a list.
    #[inline(always)]
    pub fn first(&self, list: usize) -> Option<u32> {
        Some(self.ends[list][0]).filter(|id| *id != NIL)
    }

    /// The id behind `id`.
    #[inline(always)]
    pub fn behind(&self, id: u32) -> Option<u32> {
        Some(self.links[id as usize][1]).filter(|id| *id != NIL)
    }

    /// Puts an id that is in no list at the end of one.
    #[inline(always)]
    pub fn push_back(&mut self, list: usize, id: u32) {
        let last = self.ends[list][1];
        self.links[id as usize] = [last, NIL];
        self.ends[list][1] = id;
        match last {
            NIL => self.ends[list][0] = id,
            last => self.links[last as usize][1] = id,
        }
    }

    /// Takes an id out of the list it is in.
    #[inline(always)]
    pub fn unlink(&mut self, list: usize, id: u32) {
        let [before, behind] = self.links[id as usize];
        match before {
            NIL => self.ends[list][0] = behind,
            before => self.links[before as usize][1] = behind,
        }
        match behind {
            NIL => self.ends[list][1] = before,
            behind => self.links[behind as usize][0] = before,
        }
    }

    /// The ids of a list in order.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(list), |id| self.behind(*id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_leave_from_anywhere() {
        let mut lists = Lists::new(2);
        (0..4).for_each(|_| lists.grow());
        (0..4).for_each(|id| lists.push_back(0, id));
        lists.unlink(0, 1);
        lists.unlink(0, 3);
        lists.push_back(1, 3);
        lists.unlink(0, 0);
        lists.push_back(0, 1);
        assert_eq!(lists.iter(0).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(lists.iter(1).collect::<Vec<_>>(), [3]);
    }
}
