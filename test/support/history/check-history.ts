/** No is any response but 2xx; unknown: the client disconnected first. */
export type Outcome = 'acknowledged' | 'refused' | 'unknown';

/** As its client saw it. Times are in ms of one monotonic clock. */
export interface RecordedCall {
  readonly kind: 'import' | 'rename' | 'start' | 'write' | 'append' | 'end' | 'read';
  readonly begunAt: number;
  /** Infinity when there was no response. */
  readonly endedAt: number;
  readonly outcome: Outcome;
  /** HTTP status; 0 when there was no response. */
  readonly status: number;
  /** For imports, writes and journal batches: the resource that only this call adds. */
  readonly mark?: string;
  readonly updateId?: string;
  /** For writes: a later one of the same update has a higher number. */
  readonly sequence?: number;
  /** For reads: the resources in the response. */
  readonly names?: readonly string[];
}

/** A version of the stack in its final history. */
export interface RecordedVersion {
  readonly version: number;
  readonly kind: string;
  readonly updateId: string;
  readonly names: readonly string[];
}

export interface StackHistory {
  readonly calls: readonly RecordedCall[];
  /** In ascending order, from 1, when nothing runs any more. */
  readonly versions: readonly RecordedVersion[];
  /** Resources of the newest state at the end. */
  readonly finalNames: readonly string[];
}

const expectedStatuses = new Set([0, 400, 403, 404, 409, 503]);

/**
 * Finds what no order of the acknowledged calls can explain; empty when the history is valid. A rejected import or rename must never take
 * effect; an unanswered one may, before anything that was acknowledged later.
 */
export function findViolations(history: StackHistory): string[] {
  const { calls, versions, finalNames } = history;
  const checks = new HistoryChecks(history);
  return [
    ...calls
      .filter(({ status, outcome }) => outcome !== 'acknowledged' && !expectedStatuses.has(status))
      .map((call) => `${notify(call)} was answered ${call.status}`),
    ...versions.flatMap((version, at) => (version.version === at + 1 ? [] : [`version ${at + 1} is missing`])),
    ...versions.flatMap((version) => checks.explainVersion(version)),
    ...checks.explainImports(),
    ...checks.explainRenames(),
    ...checks.explainOrder(),
    ...(same(finalNames, versions.at(-1)?.names ?? [])
      ? []
      : [`the state in the end is ${finalNames}, not that of the last version`]),
    ...calls
      .filter(({ kind, outcome }) => kind === 'read' && outcome === 'acknowledged')
      .flatMap((read) => checks.explainRead(read)),
  ];
}

/** From the call that started the version to the response that confirms it. */
interface Making {
  readonly begunAt: number;
  readonly endedAt: number;
}

class HistoryChecks {
  readonly #calls: readonly RecordedCall[];
  readonly #versions: readonly RecordedVersion[];
  readonly #making: readonly Making[];

  constructor({ calls, versions }: StackHistory) {
    this.#calls = calls;
    this.#versions = versions;
    this.#making = versions.map((version) => this.#makingOf(version));
  }

  explainVersion(version: RecordedVersion): string[] {
    const description = `version ${version.version} (${version.kind}, ${version.names})`;
    const before = this.#namesBefore(version);
    if (version.kind === 'rename')
      return same(version.names, before) ? [] : [`${description} has not the resources of the version before`];
    if (version.kind === 'import') {
      const call = this.#calls.find(({ kind, mark }) => kind === 'import' && mark === version.names[0]);
      if (!call || version.names.length !== 1) return [`${description} is nobody's import`];
      return call.outcome === 'refused'
        ? [`${description} is there although ${notify(call)} was answered ${call.status}`]
        : [];
    }
    return this.#mayBe(version, version.names, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY)
      ? []
      : [`${description} is not what its update has written`];
  }

  explainImports(): string[] {
    return this.#calls
      .filter(({ kind, outcome }) => kind === 'import' && outcome === 'acknowledged')
      .flatMap((call) => {
        const found = this.#versions.filter(({ kind, names }) => kind === 'import' && names[0] === call.mark);
        return found.length === 1 ? [] : [`${notify(call)} was acknowledged and is ${found.length} versions`];
      });
  }

  explainRenames(): string[] {
    const count = (outcome: Outcome): number =>
      this.#calls.filter((call) => call.kind === 'rename' && call.outcome === outcome).length;
    const found = this.#versions.filter(({ kind }) => kind === 'rename').length;
    const [least, most] = [count('acknowledged'), count('acknowledged') + count('unknown')];
    return found >= least && found <= most
      ? []
      : [`${found} renames are versions, but ${least} to ${most} took effect`];
  }

  /** A version that was acknowledged before another one started has the lower number. */
  explainOrder(): string[] {
    return this.#making.flatMap((earlier, at) =>
      this.#making
        .slice(at + 1)
        .flatMap((later, offset) =>
          later.endedAt < earlier.begunAt
            ? [`version ${at + 1} was begun after version ${at + 2 + offset} was acknowledged`]
            : [],
        ),
    );
  }

  explainRead(read: RecordedCall): string[] {
    const names = read.names ?? [];
    let floor = 0;
    this.#making.forEach((making, at) => {
      if (making.endedAt < read.begunAt) floor = at + 1;
    });
    for (let version = this.#versions.length; version >= floor; version--) {
      if (version === 0) {
        if (names.length === 0) return [];
        continue;
      }
      if ((this.#making[version - 1] as Making).begunAt > read.endedAt) continue;
      const candidate = this.#versions[version - 1] as RecordedVersion;
      if (same(candidate.names, names)) return [];
      const isOver = version === floor;
      if (!isOver && this.#mayBe(candidate, names, read.begunAt, read.endedAt)) return [];
    }
    return [`${notify(read)} gave ${names}, which was not the state from version ${floor} on`];
  }

  /** Whether `names` can be the state of the version's update at some moment between the two times. */
  #mayBe(version: RecordedVersion, names: readonly string[], from: number, to: number): boolean {
    const before = this.#namesBefore(version);
    if (version.kind !== 'update') return same(names, version.names);
    const own = this.#calls.filter(({ updateId }) => updateId === version.updateId);
    const done = own.filter(({ outcome, endedAt }) => outcome === 'acknowledged' && endedAt < from);
    // A 503 to a write may come before its commit: the client repeats it.
    const tried = own.filter(({ begunAt, status }) => begunAt < to && (status < 400 || status >= 500));
    const appends = tried.filter(({ kind }) => kind === 'append');
    if (appends.length > 0) {
      const must = [...before, ...marksOf(done, 'append')];
      const may = new Set([...before, ...marksOf(appends, 'append')]);
      return must.every((name) => names.includes(name)) && names.every((name) => may.has(name));
    }
    const last = Math.max(0, ...done.flatMap(({ kind, sequence }) => (kind === 'write' ? [sequence ?? 0] : [])));
    if (last === 0 && same(names, before)) return true;
    return tried.some(
      ({ kind, mark, sequence = 0 }) => kind === 'write' && sequence >= last && names.length === 1 && names[0] === mark,
    );
  }

  #namesBefore({ version }: RecordedVersion): readonly string[] {
    return this.#versions[version - 2]?.names ?? [];
  }

  #makingOf(version: RecordedVersion): Making {
    if (version.kind === 'import') {
      const call = this.#calls.find(({ kind, mark }) => kind === 'import' && mark === version.names[0]);
      return call?.outcome === 'acknowledged' ? call : { ...always, begunAt: call?.begunAt ?? 0 };
    }
    if (version.kind === 'rename') return always;
    const own = this.#calls.filter(({ updateId }) => updateId === version.updateId);
    const start = own.find(({ kind }) => kind === 'start');
    const end = own.find(({ kind, outcome }) => kind === 'end' && outcome === 'acknowledged');
    return { begunAt: start?.begunAt ?? 0, endedAt: end?.endedAt ?? Number.POSITIVE_INFINITY };
  }
}

/** For unknown outcomes. */
const always: Making = { begunAt: 0, endedAt: Number.POSITIVE_INFINITY };

function marksOf(calls: readonly RecordedCall[], kind: RecordedCall['kind']): string[] {
  return calls.flatMap((call) => (call.kind === kind && call.mark !== undefined ? [call.mark] : []));
}

function same(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && [...left].sort().join() === [...right].sort().join();
}

function notify({ kind, mark, updateId, begunAt, endedAt }: RecordedCall): string {
  return `${kind} ${mark ?? updateId ?? ''} (${Math.round(begunAt)} to ${Math.round(endedAt)} ms)`;
}
