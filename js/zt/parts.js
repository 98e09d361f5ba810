/** Parts of a file that are in memory, sorted by offset. They never overlap. */
export class Parts {
  #parts = [];

  /** The place of the first part that ends behind `offset`. */
  #place(offset) {
    let [low, high] = [0, this.#parts.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#parts[middle].end > offset) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Calls `found(part)` and `missing(start, end)` for what is here and what is not, in order. */
  scan(start, end, found, missing) {
    for (let place = this.#place(start); start < end; place++) {
      const part = this.#parts[place];
      const until = Math.min(part?.start ?? end, end);
      if (start < until) missing(start, until);
      if (until === end) return;
      found(part);
      start = part.end;
    }
  }

  /** Whether all bytes are here. If so, copies them into `out`; if not, calls `missing(start, end)`. */
  read(start, out, missing) {
    let isHere = true;
    const end = start + out.length;
    const copy = (part) => {
      const from = Math.max(part.start, start);
      const bytes = part.bytes.subarray(from - part.start, Math.min(part.end, end) - part.start);
      out.set(bytes, from - start);
    };
    this.scan(start, end, copy, (from, to) => {
      isHere = false;
      missing(from, to);
    });
    return isHere;
  }

  /** The ranges between `start` and `end` that are not here. */
  gaps(start, end) {
    const gaps = [];
    this.scan(start, end, () => {}, (from, to) => gaps.push({ start: from, end: to }));
    return gaps;
  }

  /** Adds those bytes that are not here yet. Returns the new parts. */
  add(start, bytes) {
    return this.gaps(start, start + bytes.length).map((gap) => {
      const part = { ...gap, bytes: bytes.subarray(gap.start - start, gap.end - start) };
      this.#parts.splice(this.#place(part.start), 0, part);
      return part;
    });
  }

  remove(part) {
    const place = this.#place(part.start);
    if (this.#parts[place] === part) this.#parts.splice(place, 1);
  }
}
