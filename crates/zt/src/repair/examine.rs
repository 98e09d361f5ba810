//! The choice of the file's own manifest among the candidates.

use std::collections::HashSet;
use std::sync::Arc;

use zt_container::{Footer, HEADER_LEN, Layout, MAGIC_0_1, Source, memory::zeroed};

use super::candidate::{Candidate, Copies, Search};
use super::fate::Evidence;
use super::generation::{Generation, Standing};
use super::ledger::Ledger;
use super::options::RepairOptions;
use super::places::{Places, Root};
use super::recovery::{Chosen, Recovery};
use super::remains;
use super::view::{View, header_of};
use crate::cores::progress::Gauge;
use crate::error::{Error, ErrorKind, Result};
use crate::file::File;
use crate::file::open::OpenOptions;

/// The number of manifests that are examined, from the end of the file on. An edited file has two
/// or three.
const MOST: usize = 64;

struct Examination<'e> {
    source: &'e Arc<dyn Source>,
    options: &'e RepairOptions<'e>,
    ledger: Ledger<'e>,
    gauge: &'e Gauge<'e>,
    /// The first bytes of the file.
    header: Vec<u8>,
}

/// Finds the file's manifest, and what is left of its objects. Changes nothing.
pub(super) fn examine(source: &Arc<dyn Source>, options: &RepairOptions<'_>) -> Result<Recovery> {
    crate::cores::parallel::on(options.threads, || {
        let gauge = Gauge::new(options.progress);
        let header_len = source.byte_len().min(HEADER_LEN);
        let mut header = zeroed(header_len)?;
        source.read_at(0, &mut header)?;
        let examination = Examination {
            source,
            options,
            ledger: Ledger::new(source, options.limits, &gauge),
            gauge: &gauge,
            header,
        };
        examination.run()
    })
}

impl Examination<'_> {
    fn run(mut self) -> Result<Recovery> {
        let mut recovery = Recovery::new(self.source.byte_len());
        if let Some(offset) = self.options.manifest {
            recovery.chosen = Some(self.at(offset)?);
            return Ok(recovery);
        }
        let mut read = None;
        match self.read()? {
            Err(error) => recovery.refusal = Some(error),
            Ok(candidate) => {
                // Without digests it may be the manifest of a file within, with this file truncated
                // after it. A manifest without blobs fits anywhere: then the one that readers find
                // is taken.
                if let Some((file, evidence)) = self.evidence(&candidate)?
                    && evidence.refuted == 0
                    && (evidence.proved > 0 || evidence.unproved == 0)
                {
                    let copies = Copies::of(candidate);
                    let generation = Generation::new(&copies, &evidence, Standing::Whole);
                    let chosen = Chosen::new(generation, file, evidence.objects);
                    recovery.chosen = Some(self.with_header(chosen));
                    return Ok(recovery);
                }
                read = Some(candidate);
            }
        }
        self.search(read, &mut recovery)?;
        Ok(recovery)
    }

    /// The file's last manifest, and the others on the way to a whole one.
    fn search(&mut self, read: Option<Candidate>, recovery: &mut Recovery) -> Result<()> {
        let is_0_1 = self.header == MAGIC_0_1;
        let places = Places::of(self.source, is_0_1, self.options.progress)?;
        let mut search = Search::new(self.source, &self.options.limits);
        let manifests = search.manifests(&places, read)?;
        // A manifest at the file's end that does not decode is a generation too, without any objects
        // left.
        let mut lost = match (read, places.last()) {
            (None, Some(last)) if !search.is_torn(last)? => Some(last),
            _ => None,
        };
        recovery.is_exhaustive = !places.is_cut && !search.is_cut && manifests.len() <= MOST;
        let headers = headers_of(&places, &manifests);
        let mut is_in_doubt = false;
        for copies in manifests.iter().take(MOST) {
            let Some((file, evidence)) = self.evidence(&copies.last)? else {
                continue;
            };
            let has_header = self.has_header(copies.last.layout);
            let mut standing =
                Standing::of(copies, &evidence, &headers, has_header, &mut self.ledger)?;
            let mut generation = Generation::new(copies, &evidence, standing);
            let is_nested = matches!(standing, Standing::Nested { .. });
            if read == Some(copies.last) && evidence.refuted == 0 && !is_nested {
                // The manifest that readers find, if there is no evidence against it.
                standing = Standing::Whole;
                generation = Generation::new(&Copies::of(copies.last), &evidence, standing);
            }
            lost = lost.filter(|lost| !copies.is_closed_at(lost.end()));
            recovery.is_behind_lost |= lost.is_some();
            is_in_doubt |= lost.is_some() || standing == Standing::Doubtful;
            let is_own = matches!(standing, Standing::Whole | Standing::Damaged);
            if is_own && !is_in_doubt && recovery.chosen.is_none() {
                let chosen = Chosen::new(generation, file, evidence.objects);
                recovery.chosen = Some(self.with_header(chosen));
            } else {
                recovery.others.push(generation);
            }
            if standing == Standing::Whole {
                break;
            }
        }
        recovery.is_exhaustive &= !self.ledger.is_cut;
        if manifests.is_empty() && self.has_header(Layout::V1_1) {
            recovery.remains = remains::find(self.source, self.gauge)?;
        }
        Ok(())
    }

    /// The manifest that the caller has chosen, examined like the others.
    fn at(&mut self, offset: u64) -> Result<Chosen> {
        let mut search = Search::new(self.source, &self.options.limits);
        let byte_len = self.source.byte_len();
        let mut found = None;
        for root in [Root::Map(offset), Root::Array(offset)] {
            if found.is_none() {
                found = search.at(root, byte_len)?;
            }
        }
        let evidence = match &found {
            Some(candidate) => self.evidence(candidate)?,
            None => None,
        };
        let (Some(last), Some((file, evidence))) = (found, evidence) else {
            let text = "no manifest begins here";
            return Err(Error::new(ErrorKind::Misuse, "misuse", text).with_offset(offset));
        };
        let read = self.read()?;
        let is_read = read.is_ok_and(|read| read.manifest == last.manifest);
        let copies = Copies::of(last);
        let is_0_1 = self.header == MAGIC_0_1;
        let places = Places::of(self.source, is_0_1, self.options.progress)?;
        let headers = headers_of(&places, &search.manifests(&places, None)?);
        let has_header = self.has_header(last.layout);
        let standing = Standing::of(&copies, &evidence, &headers, has_header, &mut self.ledger)?;
        if let Standing::Nested { offset } = standing {
            return self.within(offset, &copies, standing);
        }
        let mut generation = Generation::new(&copies, &evidence, standing);
        if generation.is_mendable() || is_read && evidence.refuted == 0 {
            generation.standing = Standing::Whole;
        }
        Ok(self.with_header(Chosen::new(generation, file, evidence.objects)))
    }

    /// The file that begins at `base` and ends with this manifest. Its offsets count from `base`.
    fn within(&self, base: u64, copies: &Copies, standing: Standing) -> Result<Chosen> {
        let (manifest, layout) = (copies.last.manifest, copies.last.layout);
        let source: Arc<dyn Source> = Arc::new(View::new(self.source, base, manifest, layout));
        let limits = self.options.limits;
        let file = File::from_damaged_zt(Arc::clone(&source), &OpenOptions::new().limits(limits))?;
        let evidence = Evidence::of(&file, &mut Ledger::new(&source, limits, self.gauge))?;
        let generation = Generation::new(copies, &evidence, standing);
        Ok(self.with_header(Chosen::new(generation, file, evidence.objects)))
    }

    /// The file as readers open it, or why they refuse it.
    fn read(&self) -> Result<Result<Candidate>> {
        let opened = OpenOptions::new().limits(self.options.limits);
        match opened.open_source(Arc::clone(self.source)) {
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(error) => Ok(Err(error)),
            // After an unfinished edit, readers find the old file, which ends before the source.
            Ok(file) => {
                let Some(source) = file.inner.sources.first() else {
                    return Err(Error::out_of_order());
                };
                let footer = Footer::locate(source, &self.options.limits)?;
                Ok(Ok(Candidate {
                    manifest: footer.manifest(),
                    layout: footer.layout(),
                    has_trailer: true,
                    is_closed: true,
                }))
            }
        }
    }

    fn with_header(&self, mut chosen: Chosen) -> Chosen {
        chosen.has_header = self.has_header(chosen.generation.layout);
        chosen
    }

    fn has_header(&self, layout: Layout) -> bool {
        self.header == header_of(layout)
    }

    /// The file that ends with this manifest, and the evidence about it.
    fn evidence(&mut self, candidate: &Candidate) -> Result<Option<(File, Evidence)>> {
        let view = View::new(self.source, 0, candidate.manifest, candidate.layout);
        let options = OpenOptions::new().limits(self.options.limits);
        match File::from_damaged_zt(Arc::new(view), &options) {
            Ok(file) => {
                let evidence = Evidence::of(&file, &mut self.ledger)?;
                Ok(Some((file, evidence)))
            }
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            Err(_) => Ok(None),
        }
    }
}

/// The magics that a file may begin with. Magics of trailers are left out, also if one byte of the
/// trailer is wrong.
fn headers_of(places: &Places, manifests: &[Copies]) -> Vec<u64> {
    let all = manifests.iter().flat_map(Copies::all);
    let closed = all.filter(|copy| copy.is_closed && copy.layout == Layout::V1_1);
    let ends: HashSet<u64> = closed.map(Candidate::end).collect();
    let is_header = |at: &u64| !ends.contains(&at.strict_add(HEADER_LEN));
    places.headers.iter().copied().filter(is_header).collect()
}
