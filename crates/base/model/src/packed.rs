//! Weights and vectors as the int8 kernels want them: a matrix cut into blocks of 16 rows, so that
//! every instruction set adds whole vectors and none sums across one.
//!
//! Invariant: what pads a row, a column or a unit is zero and stays zero.

/// Rows of a block, lanes of a vector.
pub const LANES: usize = 16;
/// Columns that are multiplied and added by one instruction.
pub const GROUP: usize = 4;
/// Blocks of 16 rows that a kernel works on at once.
pub const PANEL: usize = 8;

/// Sixteen 32-bit numbers, one per row of a block.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lanes(pub [i32; LANES]);

/// Weights of 16 rows by 4 columns: byte 4 r + c is row r, column c.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLine(pub [i8; LANES * GROUP]);

/// An int8 matrix in cache lines, in the order in which kernels read it. The order is by panel of
/// up to eight blocks, then by group of columns, then by block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedMatrix {
    blocks: usize,
    groups: usize,
    lines: Vec<CacheLine>,
    /// Per row -128 times the sum of its weights: what takes back an offset of 128 on the input.
    offsets: Vec<Lanes>,
}

impl PackedMatrix {
    /// Packs `rows.len() / columns` rows of `weights`. Row r goes to row `place(r)` of the packed
    /// matrix, which has `blocks` blocks; rows never named are zero.
    pub fn new(
        weights: &[i8],
        columns: usize,
        blocks: usize,
        place: impl Fn(usize) -> usize,
    ) -> PackedMatrix {
        let groups = columns.div_ceil(GROUP);
        let mut matrix = PackedMatrix {
            blocks,
            groups,
            lines: vec![CacheLine([0; LANES * GROUP]); blocks * groups],
            offsets: vec![Lanes::default(); blocks],
        };
        for (row, weights) in weights.chunks_exact(columns.max(1)).enumerate() {
            let (block, lane) = (place(row) / LANES, place(row) % LANES);
            let (panel, within) = (block / PANEL * PANEL, block % PANEL);
            let width = PANEL.min(blocks - panel);
            for (column, weight) in weights.iter().enumerate() {
                let line = panel * groups + column / GROUP * width + within;
                matrix.lines[line].0[lane * GROUP + column % GROUP] = *weight;
                matrix.offsets[block].0[lane] -= 128 * i32::from(*weight);
            }
        }
        matrix
    }

    /// Blocks of 16 rows.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The panels in order, each of (up to) [`PANEL`] blocks.
    #[inline(always)]
    pub fn panels(&self) -> Panels<'_> {
        Panels { groups: self.groups, lines: &self.lines, offsets: &self.offsets }
    }
}

/// Panels that are left. Each is its lines and its blocks' offsets; a panel of w blocks has w lines
/// per group of columns.
#[derive(Clone, Debug)]
pub struct Panels<'m> {
    groups: usize,
    lines: &'m [CacheLine],
    offsets: &'m [Lanes],
}

impl<'m> Iterator for Panels<'m> {
    type Item = (&'m [CacheLine], &'m [Lanes]);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let (offsets, later) = self.offsets.split_at(self.offsets.len().min(PANEL));
        let (lines, later_lines) = self.lines.split_at_checked(offsets.len() * self.groups)?;
        (self.lines, self.offsets) = (later_lines, later);
        if offsets.is_empty() { None } else { Some((lines, offsets)) }
    }
}

/// What turns the sums of a recurrent layer's two matrices into pre-activations. Blocks are ordered
/// by gate, in it by unit, like the sums.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateScales {
    /// Multiplier of the input's sum: pre-activation in Q12 per unit of the sum, times 2^26.
    pub input: Vec<Lanes>,
    /// The same of the hidden state's sum.
    pub hidden: Vec<Lanes>,
    /// Bias in Q12, of both matrices together; for GRU's third gate of the input alone.
    pub bias: Vec<Lanes>,
    /// Bias in Q12 of the hidden state in GRU's third gate; empty for LSTM.
    pub hidden_bias: Vec<Lanes>,
    /// Fractional bits of LSTM's cell state, 8 to 12.
    pub cell_bits: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_lands_in_its_panel() {
        let (rows, columns) = (163, 7);
        let weights: Vec<i8> = (0..rows * columns).map(|i| (i % 120) as i8 - 60).collect();
        let matrix = PackedMatrix::new(&weights, columns, 11, |row| row);
        assert_eq!((matrix.blocks(), matrix.groups), (11, 2));
        let mut seen = 0;
        for (panel, (lines, offsets)) in matrix.panels().enumerate() {
            for (at, line) in lines.iter().enumerate() {
                let (group, block) = (at / offsets.len(), panel * PANEL + at % offsets.len());
                for (byte, weight) in line.0.iter().enumerate() {
                    let (row, column) = (block * 16 + byte / 4, group * 4 + byte % 4);
                    let inside = row < rows && column < columns;
                    let expected = if inside { weights[row * columns + column] } else { 0 };
                    assert_eq!(*weight, expected, "row {row}, column {column}");
                    seen += usize::from(inside);
                }
            }
        }
        assert_eq!(seen, rows * columns);
        let sum: i32 = weights[..columns].iter().map(|w| i32::from(*w)).sum();
        assert_eq!(matrix.offsets[0].0[0], -128 * sum);
    }
}
