//! Answers of a server that one waits for.
//!
//! For: tests that ask one thing at a time. Must never know: what is expected. Units: bytes,
//! blocks.

use crate::block_world::BLOCK;
use cachewright_live::blocks::{BlockAnswer, BlockOp, BlockRequest, BlockServer};
use cachewright_live::io::sim::Sim;
use cachewright_live::io::{Buffer, Io};
use cachewright_types::TenantId;
use std::ops::Range;

/// Reads a block of a tenant.
pub fn read_block(server: &mut BlockServer, sim: &mut Sim, tenant: u16, block: u64) -> BlockAnswer {
    read_bytes(server, sim, tenant, block * BLOCK..(block + 1) * BLOCK)
}

/// Reads some bytes of a tenant.
pub fn read_bytes(
    server: &mut BlockServer,
    sim: &mut Sim,
    tenant: u16,
    bytes: Range<u64>,
) -> BlockAnswer {
    let request = BlockRequest {
        tag: bytes.start,
        tenant: TenantId(tenant),
        op: BlockOp::Read,
        offset: bytes.start,
        length: bytes.end - bytes.start,
        durable: false,
        data: Buffer::default(),
    };
    server.request(sim, request);
    answer_of(server, sim)
}

/// Waits for an answer.
pub fn answer_of(server: &mut BlockServer, sim: &mut Sim) -> BlockAnswer {
    loop {
        if let Some(answer) = server.take_answers().pop() {
            return answer;
        }
        server.advance(sim);
        let mut done = Vec::new();
        sim.wait(&mut done);
        done.into_iter().for_each(|done| server.on_done(sim, done));
    }
}
