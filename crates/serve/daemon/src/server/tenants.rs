//! The tenants of a server, by number: how each is served, its volume and its export's name.
//!
//! For: which tenants are there while some come, grow and go. Must never know: requests, how a
//! volume comes or goes. Units: bytes. A number is given once: a tenant that has gone keeps its
//! own. A tenant is served, closing, going and gone, in this order.

use crate::changes::Member;
use cachewright_live::blocks::ServedVolume;

/// The tenants; see the top of the file.
pub(super) struct ServedTenants {
    members: Vec<Member>,
    volumes: Vec<ServedVolume>,
    exports: Vec<String>,
}

impl ServedTenants {
    /// Tenants with these volumes, whose exports have these names; all of them are served.
    pub(super) fn new(volumes: Vec<ServedVolume>, exports: Vec<String>) -> ServedTenants {
        ServedTenants { members: vec![Member::Served; volumes.len()], volumes, exports }
    }

    /// How each tenant is served.
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// All volumes, those of tenants that have gone among them.
    pub(super) fn volumes(&self) -> &[ServedVolume] {
        &self.volumes
    }

    /// The names of all exports, those of tenants that have gone among them.
    pub(super) fn exports(&self) -> &[String] {
        &self.exports
    }

    /// One more tenant, which is served.
    pub(super) fn add(&mut self, volume: ServedVolume, export: String) {
        self.members.push(Member::Served);
        self.volumes.push(volume);
        self.exports.push(export);
    }

    /// A tenant's volume has grown; returns how large it was, in bytes.
    pub(super) fn grow(&mut self, tenant: usize, volume: ServedVolume) -> u64 {
        std::mem::replace(&mut self.volumes[tenant], volume).bytes
    }

    /// A tenant is served otherwise from now on.
    pub(super) fn set_member(&mut self, tenant: usize, member: Member) {
        self.members[tenant] = member;
    }

    /// The numbers of tenants that are served.
    pub(super) fn served(&self) -> impl Iterator<Item = usize> + '_ {
        let served = |tenant: &usize| self.members[*tenant] == Member::Served;
        (0..self.members.len()).filter(served)
    }

    /// The exports that clients find, separated by commas.
    pub(super) fn listed(&self) -> String {
        let names: Vec<&str> = self.served().map(|tenant| self.exports[tenant].as_str()).collect();
        names.join(", ")
    }

    /// Lines about tenants that go and have not gone when the server ends.
    pub(super) fn not_gone(&self) -> Vec<String> {
        let going =
            |tenant: &usize| matches!(self.members[*tenant], Member::Closing | Member::Going);
        let line = |tenant: usize| {
            format!(
                "export `{}`: not removed yet; the next start needs its `[[tenant]]`",
                self.exports[tenant]
            )
        };
        (0..self.members.len()).filter(going).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_live::io::FileId;
    use cachewright_live::log::format::VolumeId;

    #[test]
    fn a_tenant_that_has_gone_keeps_its_number() {
        let volume = |bytes: u64| ServedVolume { id: VolumeId(0), bytes, backing: FileId(0) };
        let mut tenants =
            ServedTenants::new(vec![volume(1), volume(2)], vec!["a".to_owned(), "b".to_owned()]);
        tenants.set_member(0, Member::Closing);
        assert_eq!(tenants.not_gone().len(), 1);
        tenants.set_member(0, Member::Gone);
        assert_eq!(tenants.not_gone(), [""; 0]);
        tenants.add(volume(3), "c".to_owned());
        assert_eq!(tenants.grow(2, volume(5)), 3);
        assert_eq!((tenants.served().collect(), tenants.listed()), (vec![1, 2], "b, c".to_owned()));
        assert_eq!((tenants.members().len(), tenants.volumes()[2].bytes), (3, 5));
    }
}
