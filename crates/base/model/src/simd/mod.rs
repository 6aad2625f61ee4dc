//! The inner loops per instruction set, and the choice among them at run time.
//!
//! Invariant: every instruction set gives the same bits as `scalar`, which is the definition. This
//! folder alone holds `unsafe`.

pub mod scalar;

#[cfg(target_arch = "x86_64")]
mod gates;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;

#[cfg(test)]
mod agree;

use crate::error::ModelError;
use crate::float_loops::{self, FloatMatrix};
use crate::packed::{GateScales, Lanes, PackedMatrix};

/// An instruction set that kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// No vector instructions by hand: the definition of every result.
    Scalar,
    /// x86-64 with AVX2: 32 products per four instructions.
    Avx2,
    /// x86-64 with AVX-512 (F, BW) and VNNI: 64 products per instruction.
    Avx512Vnni,
    /// 64-bit Arm.
    Neon,
}

impl Isa {
    /// Every instruction set, slowest first.
    pub const ALL: [Isa; 4] = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512Vnni];

    /// The name in tables and messages.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512Vnni => "avx512-vnni",
            Isa::Neon => "neon",
        }
    }

    /// Whether this processor has it.
    #[cfg(target_arch = "x86_64")]
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            Isa::Avx2 => std::is_x86_feature_detected!("avx2"),
            Isa::Avx512Vnni => {
                std::is_x86_feature_detected!("avx512f")
                    && std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512vnni")
                    && std::is_x86_feature_detected!("avx2")
            }
            Isa::Neon => false,
        }
    }

    /// Whether this processor has it.
    #[cfg(target_arch = "aarch64")]
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            Isa::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            Isa::Avx2 | Isa::Avx512Vnni => false,
        }
    }

    /// Whether this processor has it.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn is_available(self) -> bool {
        self == Isa::Scalar
    }

    /// What this processor has, slowest first.
    pub fn available() -> Vec<Isa> {
        Isa::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// The fastest that this processor has.
    pub fn best() -> Isa {
        Isa::available().last().copied().unwrap_or(Isa::Scalar)
    }
}

/// The kernels of an instruction set that is known to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernels {
    /// Invariant: available on this processor.
    isa: Isa,
}

impl Kernels {
    /// The kernels of `isa`, if this processor has it.
    pub fn new(isa: Isa) -> Result<Kernels, ModelError> {
        if isa.is_available() {
            Ok(Kernels { isa })
        } else {
            Err(ModelError::NoSuchIsa(isa.name()))
        }
    }

    /// The fastest kernels of this processor.
    pub fn best() -> Kernels {
        Kernels { isa: Isa::best() }
    }

    /// The instruction set.
    pub fn isa(self) -> Isa {
        self.isa
    }

    /// `sums = matrix * x`, exactly. `x` has at least as many groups as the matrix, `sums` as many
    /// blocks.
    #[inline]
    pub fn multiply(self, matrix: &PackedMatrix, x: &[[i8; 4]], sums: &mut [Lanes]) {
        match self.isa {
            // SAFETY: `Kernels` exists only for instruction sets that were detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::multiply(matrix, x, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { avx512::multiply(matrix, x, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { neon::multiply(matrix, x, sums) },
            _ => scalar::multiply(matrix, x, sums),
        }
    }

    /// One GRU layer after its products (of the input, of the hidden state), which are used up:
    /// `hidden` becomes the next hidden state.
    #[inline]
    pub fn gru(self, scales: &GateScales, sums: [&mut [Lanes]; 2], hidden: &mut [[i8; 16]]) {
        match self.isa {
            // SAFETY: `Kernels` exists only for instruction sets that were detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::gru(scales, sums, hidden) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { avx512::gru(scales, sums, hidden) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { neon::gru(scales, sums, hidden) },
            _ => scalar::gru(scales, sums, hidden),
        }
    }

    /// One LSTM layer after its products, as [`Kernels::gru`]: `hidden` and `cell` become the next
    /// states.
    #[inline]
    pub fn lstm(
        self,
        scales: &GateScales,
        sums: [&mut [Lanes]; 2],
        cell: &mut [[i16; 16]],
        hidden: &mut [[i8; 16]],
    ) {
        match self.isa {
            // SAFETY: `Kernels` exists only for instruction sets that were detected.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => unsafe { avx2::lstm(scales, sums, cell, hidden) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { avx512::lstm(scales, sums, cell, hidden) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => unsafe { neon::lstm(scales, sums, cell, hidden) },
            _ => scalar::lstm(scales, sums, cell, hidden),
        }
    }

    /// [`float_loops::to_int8`].
    #[inline]
    pub fn to_int8(self, features: &[f32], mean: &[f32], units: &[f32], inputs: &mut [i8]) {
        match self.isa {
            // SAFETY: as for `float_multiply`.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Vnni => unsafe { avx2::to_int8(features, mean, units, inputs) },
            _ => float_loops::to_int8(features, mean, units, inputs),
        }
    }

    /// `sums = bias + matrix * x` in single precision, adding columns in order.
    #[inline]
    pub fn float_multiply(self, matrix: &FloatMatrix, x: &[f32], sums: &mut [f32]) {
        match self.isa {
            // SAFETY: `Kernels` exists only for instruction sets that were detected, and
            // AVX-512 with VNNI only where AVX2 was as well.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Vnni => unsafe { avx2::float_multiply(matrix, x, sums) },
            _ => float_loops::multiply(matrix, x, sums),
        }
    }

    /// One GRU layer after its products, in single precision.
    #[inline]
    pub fn float_gru(self, from_input: &[f32], from_hidden: &[f32], hidden: &mut [f32]) {
        match self.isa {
            // SAFETY: as for `float_multiply`.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Vnni => unsafe {
                avx2::float_gru(from_input, from_hidden, hidden);
            },
            _ => float_loops::gru(from_input, from_hidden, hidden),
        }
    }

    /// One LSTM layer after its products, in single precision.
    #[inline]
    pub fn float_lstm(
        self,
        from_input: &[f32],
        from_hidden: &[f32],
        cell: &mut [f32],
        hidden: &mut [f32],
    ) {
        match self.isa {
            // SAFETY: as for `float_multiply`.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 | Isa::Avx512Vnni => unsafe {
                avx2::float_lstm(from_input, from_hidden, cell, hidden);
            },
            _ => float_loops::lstm(from_input, from_hidden, cell, hidden),
        }
    }
}
