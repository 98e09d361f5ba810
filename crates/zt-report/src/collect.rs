//! A report of open files.

use std::collections::HashMap;

use zt::diff::{DiffOptions, Distance, Summary, summary};
use zt::formats::{Delta, element_count};
use zt::stats::{Histogram, ObjectStats, StatsOptions, stats};
use zt::{Entry, Error, File, Progress, Result, VerifyOptions};

use crate::delta;
use crate::odd::odd;
use crate::page::abridged;
use crate::report::{Change, FileSummary, Finding, Findings, Object, Report, Status};

/// Findings of a kind that are kept.
const FINDINGS: usize = 100;
/// Bytes of a text from a file, other than the name of an object, as JSON.
const TEXT: usize = 500;

/// Blocks along a side of a picture. The finest has a pixel for each element of most matrices of small models.
const SIDES: [u16; 7] = [512, 384, 256, 192, 128, 96, 64];
const LEAST_SIDE: u16 = 48;
/// Bytes of pictures with [`ReportOptions::detail`].
const DETAIL: usize = 32 << 20;

/// How a report is made.
#[must_use]
#[derive(Debug, Clone, Copy, Default)]
pub struct ReportOptions<'p> {
    detail: bool,
    headers: bool,
    sample: bool,
    threads: Option<usize>,
    progress: Option<Progress<'p>>,
}

impl<'p> ReportOptions<'p> {
    /// The defaults: all cores, no progress, a page of limited size.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps the histograms and pictures of all objects, however large the page becomes, and makes finer pictures.
    pub const fn detail(mut self, detail: bool) -> Self {
        self.detail = detail;
        self
    }

    /// Looks at the headers alone. Two files are not compared: the objects of both are [`Status::Unread`].
    pub const fn headers(mut self, headers: bool) -> Self {
        self.headers = headers;
        self
    }

    /// Looks at the headers, and at some values of each object: [`StatsOptions::sample`]. Nothing is verified.
    /// Two files are compared as a whole.
    pub const fn sample(mut self, sample: bool) -> Self {
        self.sample = sample;
        self
    }

    /// The number of threads. The default is all cores.
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Reports bytes of values that were read: each file is read twice, to verify it and for its values.
    pub const fn progress(mut self, progress: Progress<'p>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// The limit of a page in bytes, for [`Report::to_html`]: 1 MiB, or `None` with [`detail`](Self::detail).
    #[must_use]
    pub const fn limit(&self) -> Option<usize> {
        if self.detail { None } else { Some(1 << 20) }
    }

    /// Statistics with pictures. All pictures together take at most half of the limit, if any side is short enough.
    fn stats(&self, file: &File) -> StatsOptions<'p> {
        let most = self.limit().map_or(DETAIL, |limit| limit / 2) as u64;
        let matrices = file.tensors().flatten();
        let matrices = matrices.filter_map(|it| {
            let (rows, rest) = it.shape().split_first()?;
            Some((*rows, element_count(rest)?))
        });
        let matrices: Vec<(u64, u64)> = matrices.collect();
        // Base64 has 4 characters for 3 bytes.
        let byte_len = |side: u64| {
            let blocks =
                matrices.iter().map(|(rows, columns)| side.min(*rows) * side.min(*columns));
            blocks.sum::<u64>() * 4 / 3
        };
        let mut sides = SIDES.into_iter();
        let side = sides.find(|side| byte_len((*side).into()) <= most);
        let options = StatsOptions::new()
            .sketches(side.unwrap_or(LEAST_SIDE))
            .sample(self.sample)
            .threads(self.threads);
        match self.progress {
            Some(progress) => options.progress(progress),
            None => options,
        }
    }
}

impl Report {
    /// A report of one file, which is called `path`.
    ///
    /// # Errors
    ///
    /// [`zt::ErrorKind::Interrupted`]. Faults of the file are in the report.
    pub fn of(file: &File, path: &str, options: &ReportOptions<'_>) -> Result<Self> {
        let objects = objects(file, options)?;
        Ok(Report {
            files: vec![file_summary(file, path, options)?],
            objects,
            is_sample: options.sample,
        })
    }

    /// A report of what changed from `a` to `b`, which are called by these paths.
    ///
    /// # Errors
    ///
    /// As [`Report::of`].
    pub fn compare(
        [a, b]: [&File; 2],
        paths: [&str; 2],
        options: &ReportOptions<'_>,
    ) -> Result<Self> {
        let mut distances = DiffOptions::new().threads(options.threads).nameless(true);
        if let Some(progress) = options.progress {
            distances = distances.progress(progress);
        }
        let distances = if options.headers { None } else { Some(summary(a, b, &distances)?) };
        Ok(Report {
            files: vec![file_summary(a, paths[0], options)?, file_summary(b, paths[1], options)?],
            objects: joined(objects(a, options)?, objects(b, options)?, distances.as_ref()),
            ..Report::default()
        })
    }
}

fn file_summary(file: &File, path: &str, options: &ReportOptions<'_>) -> Result<FileSummary> {
    let mut verify = VerifyOptions::new().threads(options.threads);
    if let Some(progress) = options.progress {
        verify = verify.progress(progress);
    }
    let is_verified = !options.sample && !options.headers;
    let found = if is_verified { file.verify(&verify)? } else { of_headers(file) };
    let mut of_file = FileSummary {
        path: path.to_owned(),
        kind: file.kind().to_string(),
        byte_len: file.byte_len(),
        objects: found.objects,
        is_verified,
        unverified: found.unverified.len() as u64,
        problems: Findings::of(&found.problems, |it| (it.code(), it.to_string())),
        warnings: Findings::of(&found.warnings, |it| (it.code, it.to_string())),
        delta: delta::summary(file),
        ..FileSummary::default()
    };
    // Figures to show. A file may declare more than the largest number.
    for tensor in file.tensors().flatten() {
        let count = tensor.element_count().unwrap_or(u64::MAX);
        of_file.parameters = of_file.parameters.saturating_add(count);
        for (_, component) in tensor.components() {
            let (decoded, stored) = lengths(component);
            of_file.decoded = of_file.decoded.saturating_add(decoded);
            of_file.stored = of_file.stored.saturating_add(stored);
        }
    }
    Ok(of_file)
}

/// The faults and warnings that headers show.
fn of_headers(file: &File) -> zt::Report {
    let mut found = zt::Report::default();
    found.objects = file.len() as u64;
    let entries = file.entries();
    found.problems.extend(file.truncated().cloned());
    let faults = entries.iter().filter_map(|entry| entry.fault().cloned());
    found.problems.extend(faults);
    found.warnings = file.warnings();
    found
}

impl Findings {
    fn of<T>(all: &[T], finding: impl Fn(&T) -> (&'static str, String)) -> Self {
        let first = all.iter().take(FINDINGS).map(finding);
        Findings {
            count: all.len() as u64,
            first: first
                .map(|(code, message)| Finding { code, message: abridged(&message, TEXT) })
                .collect(),
        }
    }
}

/// Decoded and stored bytes.
fn lengths(component: &zt::Component) -> (u64, u64) {
    let stored = component.blob.span.byte_len();
    (component.blob.decoded_len.unwrap_or(stored), stored)
}

fn objects(file: &File, options: &ReportOptions<'_>) -> Result<Vec<Object>> {
    if options.headers {
        return Ok(file.entries().iter().map(unread).collect());
    }
    let found = stats(file, &options.stats(file))?;
    let entries = file.entries();
    let sound: Vec<&ObjectStats> = found.iter().flatten().collect();
    let mut odd = odd(&sound).into_iter();
    let mut objects = Vec::with_capacity(entries.len());
    for (entry, found) in entries.iter().zip(found) {
        let mut object = described(entry);
        match found {
            Ok(stats) => {
                let odd = odd.next().unwrap_or_default();
                object.problems = odd.iter().map(ToString::to_string).collect();
                object.values = Some(stats);
            }
            Err(error) => {
                let delta = entry.tensor().and_then(|it| delta::delta(&it, options.sample));
                match delta {
                    Ok(Some(delta)) => object.delta = Some(delta),
                    Ok(None) => object.problems.push(reason(&error)),
                    Err(error) => object.problems.push(reason(&error)),
                }
            }
        }
        objects.push(object);
    }
    Ok(objects)
}

/// What the header says of an object.
fn unread(entry: &Entry<'_>) -> Object {
    let tensor = entry.tensor().ok();
    Object {
        problems: entry.fault().map(reason).into_iter().collect(),
        delta: tensor.and_then(|it| delta::delta(&it, true).ok().flatten()),
        ..described(entry)
    }
}

/// The message of an error, without the name of its object.
fn reason(error: &Error) -> String {
    let component = error.component().map(|it| format!("{it}: "));
    let component = component.unwrap_or_default();
    let reason = format!("{}: {component}{}", error.code(), error.message());
    abridged(&reason, TEXT)
}

fn described(entry: &Entry<'_>) -> Object {
    let name = entry.name().to_owned();
    let Ok(tensor) = entry.tensor() else {
        return Object { name, ..Object::default() };
    };
    let mut object = Object {
        name,
        value_type: match tensor.value_type() {
            Some(name) => abridged(&name, TEXT),
            None if tensor.format() == Delta::FORMAT => "delta".to_owned(),
            None => "unknown".to_owned(),
        },
        format: abridged(tensor.format(), TEXT),
        shape: tensor.shape().to_vec(),
        ..Object::default()
    };
    let mut largest = 0;
    // Saturating, as the figures of the file.
    for (_, component) in tensor.components() {
        let (decoded, stored) = lengths(component);
        object.decoded = object.decoded.saturating_add(decoded);
        object.stored = object.stored.saturating_add(stored);
        if decoded >= largest {
            largest = decoded;
            object.encoding = component.blob.encoding.as_str().to_owned();
        }
    }
    object
}

/// Without distances the values were not read.
fn joined(a: Vec<Object>, b: Vec<Object>, distances: Option<&Summary>) -> Vec<Object> {
    let is_unread = distances.is_none();
    let found = distances.iter().flat_map(|it| &it.objects).map(|it| (&*it.name, it));
    let distances: HashMap<&str, _> = found.collect();
    let is_nameless = a.len() == 1 && b.len() == 1 && (distances.len() == 1 || is_unread);
    let named = b.into_iter().map(|object| (object.name.clone(), object));
    let mut later: Vec<Option<(String, Object)>> = named.map(Some).collect();
    let places = later.iter().enumerate();
    let places = places.filter_map(|(at, it)| Some((it.as_ref()?.0.clone(), at)));
    let places: HashMap<String, usize> = places.collect();
    let mut all = Vec::new();
    for mut before in a {
        let place = places.get(&before.name).copied();
        let place = place.or_else(|| is_nameless.then_some(0));
        let after = place.and_then(|at| later.get_mut(at)?.take());
        let Some((_, mut after)) = after else {
            before.change = Some(Change::of(Status::Removed));
            all.push(before);
            continue;
        };
        let distance = distances.get(&*before.name).map(|it| it.distance.as_ref());
        after.change = Some(match distance {
            Some(Ok(distance)) => Change::by(distance, before.norm()),
            None if is_unread && before.shape == after.shape => Change::of(Status::Unread),
            _ => Change::of(Status::Incomparable),
        });
        after.before = before.histogram();
        if before.value_type != after.value_type {
            after.value_type = format!("{} → {}", before.value_type, after.value_type);
        }
        after.name = before.name;
        all.push(after);
    }
    for (_, mut added) in later.into_iter().flatten() {
        added.change = Some(Change::of(Status::Added));
        all.push(added);
    }
    all
}

impl Object {
    fn norm(&self) -> f64 {
        let finite = self.values.as_ref().and_then(|it| it.values.finite);
        finite.map_or(0.0, |it| it.std.hypot(it.mean) * (it.count as f64).sqrt())
    }

    fn histogram(&mut self) -> Option<Histogram> {
        let sketch = &mut self.values.as_mut()?.sketch;
        sketch.as_mut()?.histogram.take()
    }
}

impl Change {
    fn of(status: Status) -> Self {
        Change { status, ..Change::default() }
    }

    fn by(distance: &Distance, norm: f64) -> Self {
        let status = if distance.different == 0 { Status::Same } else { Status::Changed };
        let relative = distance.relative();
        Change {
            status,
            relative: relative.is_finite().then_some(relative),
            max_abs: distance.max_abs.is_finite().then_some(distance.max_abs),
            cosine: distance.cosine(),
            different: distance.different,
            norm,
        }
    }
}
