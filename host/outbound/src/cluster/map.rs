//! Which server of a cluster has which slot, and the parts of a call that go to each.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;
use std::sync::Arc;

use redis::Cmd;

use super::slots::{Address, Range, SLOTS};
use crate::endpoint::Endpoint;
use crate::link::LinkError;
use crate::server::Server;

/// Maximum servers of a cluster.
const SERVERS_MAX: usize = 1024;

/// The commands about one key.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) slot: u16,
    pub(crate) commands: Vec<Cmd>,
}

/// A server of the cluster.
pub(crate) struct Node {
    pub(crate) address: Address,
    pub(crate) server: Server,
}

/// Which server has which slot.
pub(crate) struct Map {
    /// Those that the operator names. The first one has what all have in common.
    seeds: Vec<Arc<Node>>,
    nodes: HashMap<Address, Arc<Node>>,
    slots: Vec<Option<Arc<Node>>>,
    /// A number for what `slots` has: another one after each change, and in each process.
    division: u64,
    /// Where the next look begins, so that one server that knows little misleads only once.
    first_asked: usize,
}

/// A step that is not done yet.
pub(crate) struct Pending {
    /// Its place in the call.
    pub(crate) place: usize,
    pub(crate) step: Step,
    /// The server that may have the key already, while the slot is moved there.
    pub(crate) asked: Option<Arc<Node>>,
}

/// Steps that one server gets together.
pub(crate) struct NodeSteps {
    pub(crate) node: Arc<Node>,
    pub(crate) steps: Vec<Pending>,
}

impl Node {
    /// A server, to which no connection is made yet.
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        let (host, port) = endpoint.address();
        Self { address: Address { host: host.to_owned(), port }, server: Server::of(endpoint) }
    }
}

impl Map {
    /// A map in which no slot has a server yet.
    pub(crate) fn new(seeds: Vec<Arc<Node>>) -> Self {
        let nodes = seeds.iter().map(|seed| (seed.address.clone(), seed.clone())).collect();
        let slots = vec![None; usize::from(SLOTS)];
        Self { seeds, nodes, slots, division: new_division(), first_asked: 0 }
    }

    /// All servers.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.nodes.values()
    }

    /// The server at this address.
    ///
    /// # Errors
    /// It cannot be asked, or there are too many.
    pub(crate) fn node(&mut self, address: &Address) -> Result<Arc<Node>, LinkError> {
        if let Some(node) = self.nodes.get(address) {
            return Ok(node.clone());
        }
        let seed = self.seeds.first().filter(|_| self.nodes.len() < SERVERS_MAX);
        let endpoint = seed
            .and_then(|seed| seed.server.endpoint().elsewhere(&address.host, address.port).ok());
        let node = Arc::new(Node::new(endpoint.ok_or(LinkError::NoServer)?));
        self.nodes.insert(address.clone(), node.clone());
        Ok(node)
    }

    /// A slot has moved to the server at `address`.
    ///
    /// # Errors
    /// As of [`Self::node`].
    pub(crate) fn moved(&mut self, slot: u16, address: &Address) -> Result<(), LinkError> {
        let node = self.node(address)?;
        if let Some(place) = self.slots.get_mut(usize::from(slot))
            && !are_same(place.as_ref(), Some(&node))
        {
            *place = Some(node);
            self.division = new_division();
        }
        Ok(())
    }

    /// Whether the server of each step is known.
    pub(crate) fn has_servers(&self, pending: &[Pending]) -> bool {
        let mut steps = pending.iter();
        steps.all(|pending| pending.asked.is_some() || self.of_slot(pending.step.slot).is_some())
    }

    fn of_slot(&self, slot: u16) -> Option<&Arc<Node>> {
        self.slots.get(usize::from(slot))?.as_ref()
    }

    /// The steps by their servers. None if one has no server.
    pub(crate) fn parts(&self, pending: Vec<Pending>) -> Option<Vec<NodeSteps>> {
        let (mut parts, mut places) = (Vec::<NodeSteps>::new(), HashMap::new());
        for pending in pending {
            let node = pending.asked.as_ref().or_else(|| self.of_slot(pending.step.slot))?;
            let place = *places.entry(Arc::as_ptr(node).addr()).or_insert(parts.len());
            match parts.get_mut(place) {
                Some(part) => part.steps.push(pending),
                None => parts.push(NodeSteps { node: node.clone(), steps: vec![pending] }),
            }
        }
        Some(parts)
    }

    /// All servers, in another order each time.
    pub(crate) fn nodes_to_ask(&mut self) -> Vec<Arc<Node>> {
        let mut nodes: Vec<_> = self.nodes.values().cloned().collect();
        let first = self.first_asked.checked_rem(nodes.len()).unwrap_or_default();
        nodes.rotate_left(first);
        self.first_asked = self.first_asked.wrapping_add(1);
        nodes
    }

    /// Take what a server says of the slots. Servers that it does not name are forgotten, apart
    /// from the seeds.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn take(&mut self, ranges: &[Range]) -> Result<(), LinkError> {
        let named: HashSet<_> = ranges.iter().map(|range| &range.server).collect();
        let seeds: HashSet<_> = self.seeds.iter().map(|seed| &seed.address).collect();
        self.nodes.retain(|address, _| named.contains(address) || seeds.contains(address));
        let before = self.slots.clone();
        self.slots.fill(None);
        // Also if it ends with an error.
        let division = std::mem::replace(&mut self.division, new_division());
        for Range { first, last, server } in ranges {
            let node = self.node(server)?;
            let slots = self.slots.get_mut(usize::from(*first)..=usize::from(*last));
            slots.into_iter().for_each(|slots| slots.fill(Some(node.clone())));
        }
        let mut pairs = self.slots.iter().zip(&before);
        if pairs.all(|(now, before)| are_same(now.as_ref(), before.as_ref())) {
            self.division = division;
        }
        Ok(())
    }

    /// The servers that have slots, in the order of their first ones, and the number of this
    /// division of the slots.
    pub(crate) fn division(&self) -> (u64, Vec<Arc<Node>>) {
        let (mut servers, mut known_servers, mut before) = (Vec::new(), HashSet::new(), None);
        for node in self.slots.iter().flatten() {
            // Most slots have the server of the one before.
            if !are_same(before.replace(node), Some(node))
                && known_servers.insert(Arc::as_ptr(node).addr())
            {
                servers.push(node.clone());
            }
        }
        (self.division, servers)
    }
}

fn are_same(one: Option<&Arc<Node>>, other: Option<&Arc<Node>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

/// Random, and no address can be told from it.
fn new_division() -> u64 {
    RandomState::new().hash_one(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> Address {
        Address { host: "127.0.0.1".to_owned(), port }
    }

    fn map() -> Map {
        let url = "redis://127.0.0.1:1".parse().unwrap();
        Map::new(vec![Arc::new(Node::new(Endpoint::new(&url, None).unwrap()))])
    }

    fn pending(place: usize, slot: u16) -> Pending {
        Pending { place, step: Step { slot, commands: Vec::new() }, asked: None }
    }

    #[test]
    fn steps_go_to_the_servers_of_their_slots() {
        let mut map = map();
        assert!(!map.has_servers(&[pending(0, 5)]) && map.parts(vec![pending(0, 5)]).is_none());
        let range = |first, last, port| Range { first, last, server: at(port) };
        map.take(&[range(0, 9, 1), range(10, 19, 2)]).unwrap();
        let steps = || vec![pending(0, 5), pending(1, 15), pending(2, 0)];
        assert!(map.has_servers(&steps()) && !map.has_servers(&[pending(0, 20)]));
        let places = |map: &Map| {
            let parts = map.parts(steps()).unwrap().into_iter();
            let places = |part: NodeSteps| {
                let places = part.steps.iter().map(|pending| pending.place).collect();
                (part.node.address.port, places)
            };
            parts.map(places).collect::<Vec<(u16, Vec<usize>)>>()
        };
        assert_eq!(places(&map), [(1, vec![0, 2]), (2, vec![1])]);
        map.moved(5, &at(3)).unwrap();
        assert_eq!(places(&map), [(3, vec![0]), (2, vec![1]), (1, vec![2])]);
        // The seed stays, also if no slot is there.
        map.take(&[range(0, 19, 2)]).unwrap();
        assert_eq!(places(&map), [(2, vec![0, 1, 2])]);
        let ports = |map: &mut Map| {
            let nodes = map.nodes_to_ask();
            nodes.iter().map(|node| node.address.port).collect::<Vec<_>>()
        };
        let (first, second) = (ports(&mut map), ports(&mut map));
        assert_eq!((first.len(), first.first()), (2, second.last()));
    }

    #[test]
    fn a_division_has_another_number_after_each_change() {
        let mut map = map();
        let range = |first, last, port| Range { first, last, server: at(port) };
        let ranges = [range(0, 4, 3), range(5, 9, 2), range(10, 19, 3), range(20, 20, 1)];
        map.take(&ranges).unwrap();
        let ports = |map: &Map| {
            let (_, servers) = map.division();
            servers.iter().map(|node| node.address.port).collect::<Vec<_>>()
        };
        let (first, _) = map.division();
        assert_eq!(ports(&map), [3, 2, 1]);
        map.take(&ranges).unwrap();
        map.moved(5, &at(2)).unwrap();
        assert_eq!(map.division().0, first, "nothing has changed");
        map.moved(5, &at(4)).unwrap();
        let (second, _) = map.division();
        assert_ne!(first, second);
        assert_eq!(ports(&map), [3, 4, 2, 1]);
        map.take(&ranges).unwrap();
        assert!(![first, second].contains(&map.division().0));
        assert_eq!(ports(&map), [3, 2, 1]);
    }

    #[test]
    fn a_cluster_has_a_maximum_of_servers() {
        let mut map = map();
        (2..=1024).for_each(|port| drop(map.node(&at(port)).unwrap()));
        assert!(matches!(map.node(&at(2000)), Err(LinkError::NoServer)));
        map.node(&at(7)).unwrap();
    }
}
