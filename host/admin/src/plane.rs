//! Answering one request on the admin plane.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use gristmill_control::Control;
use gristmill_core::{ErrorCode, KeyHash};
use gristmill_log::Log;
use gristmill_transport::body::{self, Lent};
use gristmill_transport::credentials::KeyHasher;
use gristmill_transport::{Checked, Problem, REQUEST_ID, RequestIds, Shutdown, Tls, status_of};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response};
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::Map;
use tokio::sync::Semaphore;

use crate::answer::Noted;
use crate::attempts::Attempts;
use crate::audit::{AdminCall, Audit};
use crate::body::AdminBody;
use crate::busy::Busy;
use crate::caller::{Caller, NoCaller, Tokens};
use crate::change_options::change_options;
use crate::events::Feeds;
use crate::observe::Scrapes;
use crate::public::Pages;
use crate::receive::{Received, drop_some};
use crate::resource::Asked;
use crate::routes::resource_at;
use crate::state::{AdminState, UploadLimits};
use crate::trials::Trials;
use crate::{openapi, wait};

/// The admin plane's handler; clones share everything.
#[derive(Clone)]
pub struct AdminPlane {
    state: Arc<AdminState>,
    /// They need no token.
    pages: Arc<Pages>,
    request_ids: Arc<RequestIds>,
    audit: Arc<Audit>,
    attempts: Arc<Mutex<Attempts>>,
    busy: Busy,
}

/// What the admin plane recognises and makes tokens with.
#[derive(Clone, Debug)]
pub struct AdminKeys {
    /// The hash of the token that the server was started with.
    pub root: KeyHash,
    /// Makes the hashes of tokens and keys.
    pub hasher: KeyHasher,
}

/// The parts that the admin plane is made of.
pub struct AdminParts {
    /// Makes the changes.
    pub control: Arc<Control>,
    /// What it recognises and makes tokens with.
    pub keys: AdminKeys,
    /// The bounds on uploads.
    pub limits: UploadLimits,
    /// The status shows its figures.
    pub log: Log,
    /// The text of all metrics.
    pub scrapes: Scrapes,
    /// Runs requests that people try.
    pub trials: Arc<dyn Trials>,
    /// The TLS of each plane that has it, by the plane's name. The status shows it.
    pub tls: Vec<(&'static str, Tls)>,
    /// When it begins, streams of events end.
    pub shutdown: Shutdown,
}

/// The answer to a request, and the parts of it that the log names.
struct Answered {
    response: Response<AdminBody>,
    noted: Noted,
}

impl Answered {
    /// The answer, of which the log names nothing.
    fn plain(response: Response<AdminBody>) -> Self {
        Self { response, noted: Noted::default() }
    }
}

impl AdminPlane {
    /// The handler.
    ///
    /// # Errors
    /// The description of the API cannot be written as JSON.
    pub fn new(parts: AdminParts) -> Result<Self, serde_json::Error> {
        let AdminParts { control, keys, limits, log, scrapes, trials, tls, shutdown } = parts;
        let AdminKeys { root, hasher } = keys;
        let tokens = Tokens { root, hasher };
        let pages = Arc::new(Pages::new(&openapi::document()?)?);
        let state = Arc::new(AdminState {
            control,
            tokens,
            tries: Mutex::default(),
            limits,
            log,
            scrapes,
            trials,
            usage_turns: Arc::new(Semaphore::new(1)),
            tls,
            feeds: Feeds::default(),
            shutdown,
        });
        let (request_ids, audit, attempts) = (Arc::default(), Arc::default(), Arc::default());
        Ok(Self { state, pages, request_ids, audit, attempts, busy: Busy::default() })
    }

    /// Answer one request of the client with this address.
    pub async fn handle(self, request: Request<Incoming>, client: IpAddr) -> Response<AdminBody> {
        let id = self.request_ids.of(request.headers());
        let (head, body) = request.into_parts();
        let (body, lender) = Lent::new(body);
        let caller = self.caller(&head, client);
        let outcome = self.outcome(&head, body, &caller).await;
        let outcome = outcome.map_err(|problem| match &caller {
            Ok(caller) => self.refusal(problem, caller, client),
            Err(_) => problem,
        });
        let (status, code, noted) = match &outcome {
            Ok(answered) => (answered.response.status(), None, answered.noted.clone()),
            Err(problem) => (status_of(problem.code), Some(problem.code), Noted::default()),
        };
        let path = head.uri.path_and_query().map_or("", |path| path.as_str());
        let method = head.method.as_str();
        let caller = caller.as_ref().ok();
        self.audit.write(&AdminCall { method, path, id: &id, client, caller, status, code, noted });
        let mut answer = match outcome {
            Ok(answered) => answered.response,
            Err(problem) => problem.into_response(&id).map(ended),
        };
        if let Ok(id) = HeaderValue::try_from(&*id) {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        body::finish(&head, lender.take().as_mut(), &mut answer).await;
        answer
    }

    async fn outcome(
        &self,
        head: &Parts,
        body: Lent,
        caller: &Result<Caller, Problem>,
    ) -> Result<Answered, Problem> {
        match (self.pages.answer(head), caller) {
            (Some(page), _) => page.map(Answered::plain),
            (None, Ok(caller)) => self.answer(head, body, caller).await,
            (None, Err(refused)) => Err(refused.clone()),
        }
    }

    /// The caller, if the token is valid. Who tried many wrong ones has to wait, but for the right
    /// one.
    fn caller(&self, head: &Parts, client: IpAddr) -> Result<Caller, Problem> {
        let desired = self.state.control.desired();
        let caller = self.state.tokens.caller(&desired, &head.headers, SystemTime::now());
        if caller == Err(NoCaller::Wrong) {
            self.count_wrong(client)?;
        }
        Ok(caller?)
    }

    /// Count a wrong token, or a guess at one.
    ///
    /// # Errors
    /// Too many of them came from the client.
    fn count_wrong(&self, client: IpAddr) -> Result<(), Problem> {
        let Some(wait) = self.attempts.lock().failed(client, Instant::now()) else { return Ok(()) };
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let detail = format!(
            "too many wrong admin tokens came from {client}: try again in {seconds} s; a valid token \
             passes at any time"
        );
        let problem = Problem::new(ErrorCode::TooManyFailures, detail);
        Err(Problem { retry_after_s: seconds, ..problem })
    }

    /// The refusal, as this caller may see it.
    fn refusal(&self, problem: Problem, caller: &Caller, client: IpAddr) -> Problem {
        if caller.guest().is_none() {
            return problem;
        }
        // A key that somebody else has is a guess at it.
        if problem.meets_secret {
            self.audit.write_guess(caller, client);
            return self.count_wrong(client).err().unwrap_or(problem);
        }
        // What is wrong with the server, and the cure, are for its operators.
        match problem.code {
            ErrorCode::Internal => {
                let detail = "the server failed: its operator finds the reason in its log";
                Problem { detail: detail.into(), members: Map::new(), ..problem }
            }
            _ => problem,
        }
    }

    async fn answer(&self, head: &Parts, body: Lent, caller: &Caller) -> Result<Answered, Problem> {
        let resource = resource_at(head.uri.path())?;
        let allowed = resource.allowed();
        if let Checked::Options = allowed.check(&head.method)? {
            return Ok(Answered::plain(allowed.options().map(Bytes::into)));
        }
        let reads = [Method::GET, Method::HEAD].contains(&head.method);
        let permission = resource.permission(&head.method);
        permission.check(caller, &self.state.control.desired())?;
        let changes = caller.guest().filter(|_| !reads);
        let _under_way = changes.map(|token| self.busy.begin(token)).transpose()?;
        let options = match change_options(&head.headers, caller) {
            Ok(options) => options,
            Err(problem) => {
                drop_some(body).await;
                return Err(problem);
            }
        };
        let conditions = options.conditions.clone();
        let (query, waits) = match reads {
            true => (head.uri.query().map(Cow::from), false),
            false => match wait::taken(head.uri.query()) {
                Ok(taken) => taken,
                Err(problem) => {
                    drop_some(body).await;
                    return Err(problem);
                }
            },
        };
        let (query, headers) = (query.as_deref(), &head.headers);
        let received = Received { query, headers, caller, options, body };
        let asked = Asked { state: &self.state, method: &head.method, received };
        let mut answer = resource.answer(asked).await?;
        if let Some(release) = answer.noted.release.filter(|_| waits) {
            let waited = wait::wait(&self.state.control, release).await;
            answer = answer.waited(waited.document, waited.is_complete)?;
        }
        let noted = answer.noted.clone();
        let response = match reads {
            true => answer.for_reader(&conditions, head.uri.path())?,
            false => answer.into_response(),
        };
        Ok(Answered { response, noted })
    }
}

/// The body of a problem with a newline at its end, so that it reads well in a terminal.
fn ended(body: Bytes) -> AdminBody {
    let mut text = Vec::from(body);
    text.push(b'\n');
    Bytes::from(text).into()
}
