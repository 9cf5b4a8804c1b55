use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn wanted(half: Half, is_long: bool) -> Wanted {
    Wanted { half, is_long, rests: false, latest: None }
}

/// A queue whose two permits, one of them for long calls, are taken; and calls that wait.
struct Full {
    state: QueueState,
    /// The calls are of this one.
    export: Round,
    now: Instant,
    receivers: Vec<oneshot::Receiver<Admission>>,
}

impl Full {
    fn new() -> Self {
        let state = QueueState { free: [0, 0, 2], ..QueueState::new([2, 1, 2]) };
        Self { state, export: Round::default(), now: Instant::now(), receivers: Vec::new() }
    }

    fn add(&mut self, line: usize, within: Option<Duration>) -> Result<u64, TooBusy> {
        let export = self.export.clone();
        self.add_of(&export, line, within)
    }

    fn add_of(
        &mut self,
        export: &Round,
        line: usize,
        within: Option<Duration>,
    ) -> Result<u64, TooBusy> {
        let (sender, receiver) = oneshot::channel();
        let latest = within.map(|within| self.now + within);
        let added = self.state.add(line, Waiter { latest, sender }, export, self.now);
        self.receivers.push(receiver);
        added
    }

    /// Give permits back. Returns the lines of the calls that begin then, and of those refused.
    fn free(&mut self, kinds: &[Kind]) -> Vec<(usize, bool)> {
        kinds.iter().for_each(|kind| self.state.free[*kind as usize] += 1);
        let next = || self.state.next_answer(self.now);
        std::iter::from_fn(next).map(|next| (next.line, next.refused.is_none())).collect()
    }
}

const SECOND_SHORT: usize = 1;
const SECOND_LONG: usize = 2;
const FIRST_SHORT: usize = 3;
const FIRST_LONG: usize = 4;

#[test]
fn each_line_needs_its_places() {
    let line = |half, is_long| wanted(half, is_long).line();
    assert_eq!(needs(line(Half::Second, false)), [true, false, false]);
    assert_eq!(needs(line(Half::Second, true)), [true, true, false]);
    assert_eq!(needs(line(Half::First, false)), [true, false, false]);
    assert_eq!(needs(line(Half::First, true)), [true, true, false]);
    for is_long in [false, true] {
        let resting = Wanted { rests: true, ..wanted(Half::First, is_long) };
        assert_eq!(needs(resting.line()), [true, is_long, true]);
    }
}

#[test]
fn begun_calls_go_first_then_second_calls_then_first_ones() {
    let mut full = Full::new();
    for line in [FIRST_LONG, FIRST_LONG, SECOND_LONG, BEGUN] {
        full.add(line, None).unwrap();
    }
    assert_eq!(full.free(&[Kind::Long]), [(BEGUN, true)]);
    assert!(full.free(&[Kind::Call]).is_empty());
    assert_eq!(full.free(&[Kind::Long]), [(SECOND_LONG, true)]);
    assert_eq!(full.free(&[Kind::Long, Kind::Call]), [(FIRST_LONG, true)]);
}

#[test]
fn a_short_call_does_not_wait_for_a_place_for_long_ones() {
    let mut full = Full::new();
    for line in [FIRST_LONG, FIRST_SHORT, SECOND_LONG, SECOND_SHORT] {
        full.add(line, None).unwrap();
    }
    assert_eq!(full.free(&[Kind::Call]), [(SECOND_SHORT, true)]);
    assert_eq!(full.free(&[Kind::Call]), [(FIRST_SHORT, true)]);
    assert_eq!(full.free(&[Kind::Call, Kind::Long]), [(SECOND_LONG, true)]);
}

#[test]
fn calls_of_equal_precedence_begin_in_their_order() {
    let mut full = Full::new();
    for line in [FIRST_LONG, FIRST_SHORT] {
        full.add(line, None).unwrap();
    }
    let freed = full.free(&[Kind::Long, Kind::Call, Kind::Call]);
    assert_eq!(freed, [(FIRST_LONG, true), (FIRST_SHORT, true)]);
}

/// The exports of the calls that begin when one permit after the other comes back.
fn exports_in_turn(full: &mut Full, exports: &[&Round], count: usize) -> Vec<usize> {
    let free = |_| {
        let before: Vec<_> = exports.iter().map(|export| export.of(FIRST_LONG)).collect();
        full.free(&[Kind::Long, Kind::Call]);
        let moved = |(export, before): (&&Round, &u64)| export.of(FIRST_LONG) > *before;
        exports.iter().zip(&before).position(moved).unwrap()
    };
    (0..count).map(free).collect()
}

#[test]
fn exports_take_turns_whatever_the_number_of_their_calls() {
    let mut full = Full::new();
    let [many, few, late] = [(); 3].map(|()| Round::default());
    (0..100).for_each(|_| _ = full.add_of(&many, FIRST_LONG, None).unwrap());
    (0..2).for_each(|_| _ = full.add_of(&few, FIRST_LONG, None).unwrap());
    let exports = [&many, &few, &late];
    assert_eq!(exports_in_turn(&mut full, &exports, 6), [0, 1, 0, 1, 0, 0]);
    // One that comes late, and one that comes again, have no turns to catch up on.
    (0..3).for_each(|_| _ = full.add_of(&late, FIRST_LONG, None).unwrap());
    full.add_of(&few, FIRST_LONG, None).unwrap();
    assert_eq!(exports_in_turn(&mut full, &exports, 7), [2, 1, 0, 2, 0, 2, 0]);
}

#[test]
fn an_export_whose_every_call_waits_alone_has_no_more_turns_than_others() {
    let mut full = Full::new();
    let [many, one] = [(); 2].map(|()| Round::default());
    (0..100).for_each(|_| _ = full.add_of(&many, FIRST_LONG, None).unwrap());
    let mut begun = [0; 2];
    for _ in 0..20 {
        full.add_of(&one, FIRST_LONG, None).unwrap();
        for index in exports_in_turn(&mut full, &[&many, &one], 2) {
            begun[index] += 1;
        }
    }
    assert_eq!(begun, [20, 20]);
}

#[test]
fn turns_in_one_line_say_nothing_of_another() {
    let mut full = Full::new();
    let [short, long, late] = [(); 3].map(|()| Round::default());
    (0..10).for_each(|_| _ = full.add_of(&long, FIRST_LONG, None).unwrap());
    // Many short calls begin meanwhile.
    for _ in 0..100 {
        full.add_of(&short, FIRST_SHORT, None).unwrap();
        assert_eq!(full.free(&[Kind::Call]), [(FIRST_SHORT, true)]);
    }
    full.add_of(&late, FIRST_LONG, None).unwrap();
    assert_eq!(exports_in_turn(&mut full, &[&long, &late], 3), [0, 1, 0]);
}

#[test]
fn calls_that_leave_cost_their_export_no_turn_and_gain_none() {
    let mut full = Full::new();
    let [leaving, other] = [(); 2].map(|()| Round::default());
    let numbers: Vec<_> =
        (0..4).map(|_| full.add_of(&leaving, FIRST_LONG, None).unwrap()).collect();
    (0..4).for_each(|_| _ = full.add_of(&other, FIRST_LONG, None).unwrap());
    // The first one and the last one.
    for number in [numbers[0], numbers[3]] {
        assert!(full.state.lines[FIRST_LONG].leave(&leaving, number).is_some());
    }
    assert_eq!(full.state.lines[FIRST_LONG].len(), 6);
    let exports = [&leaving, &other];
    assert_eq!(exports_in_turn(&mut full, &exports, 6), [0, 1, 0, 1, 1, 1]);
}

#[test]
fn the_estimate_of_a_newcomer_knows_whose_turn_it_is() {
    let mut full = Full::new();
    let many = Round::default();
    (0..18).for_each(|_| _ = full.add_of(&many, FIRST_LONG, None).unwrap());
    for _ in 0..8 {
        full.now += SECOND;
        full.free(&[Kind::Long, Kind::Call]);
    }
    let refused = full.add_of(&many, FIRST_LONG, Some(5 * SECOND)).unwrap_err();
    assert_eq!(refused.expected, Duration::from_millis(13_750));
    full.add(FIRST_LONG, Some(5 * SECOND)).unwrap();
}

#[test]
fn a_newcomer_that_would_begin_too_late_is_refused_at_once() {
    let mut full = Full::new();
    for _ in 0..10 {
        full.add(FIRST_LONG, Some(100 * SECOND)).unwrap();
    }
    // Eight calls begin, one a second.
    for _ in 0..8 {
        full.now += SECOND;
        assert_eq!(full.free(&[Kind::Long, Kind::Call]), [(FIRST_LONG, true)]);
    }
    let refused = full.add(FIRST_LONG, Some(3 * SECOND)).unwrap_err();
    let expected = Duration::from_millis(3750);
    assert_eq!(refused, TooBusy { expected, left: 3 * SECOND });
    assert_eq!(refused.retry_after(), Duration::from_millis(750));
    full.add(FIRST_LONG, Some(4 * SECOND)).unwrap();
    // Those who wait for other permits are not concerned.
    full.add(FIRST_SHORT, Some(Duration::ZERO)).unwrap();
    full.add(SECOND_LONG, Some(Duration::ZERO)).unwrap();
}

#[test]
fn as_many_as_there_are_places_may_wait_whatever_the_estimate() {
    let mut full = Full::new();
    for _ in 0..8 {
        full.add(FIRST_LONG, None).unwrap();
        full.now += 1000 * SECOND;
        full.free(&[Kind::Long, Kind::Call]);
    }
    full.add(FIRST_LONG, Some(SECOND)).unwrap();
    full.add(FIRST_LONG, Some(SECOND)).unwrap_err();
    // The estimate follows.
    full.now += SECOND;
    full.free(&[Kind::Long, Kind::Call]);
    for _ in 0..32 {
        full.add(FIRST_LONG, None).unwrap();
        full.now += SECOND / 100;
        full.free(&[Kind::Long, Kind::Call]);
    }
    full.add(FIRST_LONG, None).unwrap();
    full.add(FIRST_LONG, Some(10 * SECOND)).unwrap();
}

#[test]
fn one_long_pause_refuses_nobody_for_long() {
    let mut full = Full::new();
    let begin = |full: &mut Full, after: Duration| {
        full.add(FIRST_LONG, None).unwrap();
        full.now += after;
        assert_eq!(full.free(&[Kind::Long, Kind::Call]), [(FIRST_LONG, true)]);
    };
    // The first guest of a plugin takes three seconds, and hundreds of calls wait.
    (0..300).for_each(|_| _ = full.add(FIRST_LONG, None).unwrap());
    begin(&mut full, 3 * SECOND);
    (0..6).for_each(|_| begin(&mut full, SECOND / 1000));
    full.add(FIRST_LONG, Some(10 * SECOND)).unwrap();
    (0..2).for_each(|_| begin(&mut full, SECOND / 1000));
    full.add(FIRST_LONG, Some(SECOND)).unwrap();
}

#[test]
fn slow_first_guests_refuse_nobody() {
    let mut full = Full::new();
    // They take 50 ms each, and hundreds of calls wait.
    (0..300).for_each(|_| _ = full.add(FIRST_LONG, None).unwrap());
    for _ in 0..31 {
        full.now += SECOND / 20;
        full.free(&[Kind::Long, Kind::Call]);
        full.add(FIRST_LONG, Some(SECOND)).unwrap();
    }
    // A plugin whose calls go on like that is known for it.
    full.now += SECOND / 20;
    full.free(&[Kind::Long, Kind::Call]);
    full.add(FIRST_LONG, Some(SECOND)).unwrap_err();
}

#[test]
fn calls_of_an_export_that_wait_as_long_ones_are_seen() {
    let queue = Queue(Mutex::new(Full::new().state));
    let [waiting, other] = [(); 2].map(|()| Round::default());
    let (sender, _receiver) = oneshot::channel();
    let waiter = Waiter { latest: None, sender };
    queue.0.lock().add(FIRST_LONG, waiter, &waiting, Instant::now()).unwrap();
    assert!(queue.has_long_of(&waiting, Half::First));
    assert!(!queue.has_long_of(&waiting, Half::Second) && !queue.has_long_of(&other, Half::First));
}

#[test]
fn a_request_that_waited_too_long_begins_no_call() {
    let mut full = Full::new();
    full.add(FIRST_LONG, Some(SECOND)).unwrap();
    full.add(FIRST_LONG, Some(3 * SECOND)).unwrap();
    full.now += 2 * SECOND;
    let answers = full.free(&[Kind::Long, Kind::Call]);
    assert_eq!(answers, [(FIRST_LONG, false), (FIRST_LONG, true)]);
}

#[tokio::test]
async fn places_come_back_whatever_becomes_of_a_call() {
    let queue = Queue::new(1, 1, 1);
    let long = wanted(Half::First, true);
    let first = queue.enter(long, &Round::default()).await.unwrap();
    assert!(!queue.has_long(Half::First));
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.enter(long, &Round::default()).await }
    });
    let leaving = tokio::spawn({
        let queue = queue.clone();
        async move { queue.enter(long, &Round::default()).await }
    });
    while queue.0.lock().lines[FIRST_LONG].len() < 2 {
        tokio::task::yield_now().await;
    }
    leaving.abort();
    assert!(leaving.await.is_err());
    assert_eq!(queue.0.lock().lines[FIRST_LONG].len(), 1);
    // Granted to a call that leaves before it notices.
    drop(first);
    assert_eq!((queue.taken(Kind::Call), queue.taken(Kind::Long)), (1, 1));
    waiting.abort();
    drop(waiting.await);
    assert_eq!((queue.taken(Kind::Call), queue.taken(Kind::Long)), (0, 0));
    // A call that has begun takes a permit for long calls beside its own.
    let mut begun = queue.enter(wanted(Half::Second, false), &Round::default()).await.unwrap();
    let call = begun.take(Kind::Call);
    let permit = queue.long_permit(&Round::default()).await.unwrap();
    assert_eq!((queue.taken(Kind::Call), queue.taken(Kind::Long)), (1, 1));
    drop((permit, call));
    assert_eq!((queue.taken(Kind::Call), queue.taken(Kind::Long)), (0, 0));
}
