import { stripColors } from './colored-text.ts';
import type { EngineEvent, Operation, StepMetadata } from './engine-event.ts';

/** A step is running, all steps are done, or one has failed. `known`: only messages name the resource. */
export type RowStatus = 'known' | 'running' | 'done' | 'failed';

/** Of the engine, a provider, the program or a policy. */
export interface Diagnostic {
  sequence: number;
  timestamp: number;
  severity: 'debug' | 'info' | 'warning' | 'error';
  /** The text with the CLI's color tags. */
  message: string;
  policy: { name: string; pack: string; isMandatory: boolean } | null;
  /** Parts of one output of the program have the same id; 0 means none. */
  streamId: number;
}

/** A resource in the tree of an update. */
export interface ResourceRow {
  urn: string;
  type: string;
  parent: string | null;
  op: Operation;
  status: RowStatus;
  /** Unix time in seconds, or null before its first step. */
  startedAt: number | null;
  endedAt: number | null;
  /** Names of the properties that the step changes. */
  diffs: readonly string[];
  detailedDiff: StepMetadata['detailedDiff'];
  isProtected: boolean;
  diagnostics: Diagnostic[];
  /** Worst severity of `diagnostics`, without debug output. */
  worst: Diagnostic['severity'] | null;
  /** A message that the next one replaces, such as "waiting for the instance". */
  activity: string | null;
  children: ResourceRow[];
  lastStep: StepMetadata | null;
}

export interface UpdateSummary {
  durationSeconds: number;
  changes: Record<Operation, number>;
  result: string;
  maybeCorrupt: boolean;
}

/** A plugin that is being downloaded or installed. */
export interface Download {
  id: string;
  message: string;
  /** Bytes. */
  received: number;
  total: number;
  isDone: boolean;
}

const maxStreamCharacters = 64 * 1024;
const replaceOperations = new Set(['replace', 'create-replacement', 'delete-replaced', 'import-replacement']);
const severities = ['debug', 'info', 'warning', 'error'] as const;

/**
 * The tree of the CLI, built from engine events one by one. The cost of an event does not depend on the number of earlier ones. Events may
 * arrive in any order and more than once: the CLI sends several batches at a time and repeats them.
 */
export class UpdateProgress {
  readonly rows = new Map<string, ResourceRow>();
  /** Rows without a parent, or whose parent is not known yet. */
  readonly roots = new Set<ResourceRow>();
  /** Messages without a resource. */
  readonly diagnostics: Diagnostic[] = [];
  readonly downloads = new Map<string, Download>();
  /** Steps that are done, by operation. */
  readonly doneByOperation = new Map<Operation, number>();
  readonly diagnosticCounts = { info: 0, warning: 0, error: 0 };
  runningCount = 0;
  failedCount = 0;
  eventCount = 0;
  firstTimestamp: number | null = null;
  lastTimestamp: number | null = null;
  summary: UpdateSummary | null = null;
  config: Record<string, unknown> | null = null;
  hasEnded = false;
  readonly #seen = new Set<number>();
  /** By list, in order: parts of one output may arrive in any order. */
  readonly #parts = new Map<readonly Diagnostic[], Diagnostic[]>();
  readonly #orphans = new Map<string, ResourceRow[]>();
  readonly #steps = new Map<string, { open: Set<Operation>; over: Set<Operation>; failed: boolean }>();

  /** Returns false if the event was added before. */
  add(event: EngineEvent): boolean {
    if (this.#seen.has(event.sequence)) return false;
    this.#seen.add(event.sequence);
    this.eventCount += 1;
    this.firstTimestamp = Math.min(this.firstTimestamp ?? event.timestamp, event.timestamp);
    this.lastTimestamp = Math.max(this.lastTimestamp ?? event.timestamp, event.timestamp);
    if (event.resourcePreEvent) this.#begin(event.resourcePreEvent.metadata, event.timestamp);
    else if (event.resOutputsEvent) this.#end(event.resOutputsEvent.metadata, event.timestamp, false);
    else if (event.resOpFailedEvent) this.#end(event.resOpFailedEvent.metadata, event.timestamp, true);
    else if (event.diagnosticEvent) this.#diagnose(event, event.diagnosticEvent);
    else if (event.policyEvent) this.#report(event, event.policyEvent);
    else this.#addOther(event);
    return true;
  }

  #addOther(event: EngineEvent): void {
    const { summaryEvent, preludeEvent, progressEvent, errorEvent, stdoutEvent } = event;
    if (summaryEvent) {
      this.summary = {
        durationSeconds: summaryEvent.durationSeconds ?? 0,
        changes: summaryEvent.resourceChanges ?? {},
        result: summaryEvent.result ?? '',
        maybeCorrupt: summaryEvent.maybeCorrupt ?? false,
      };
    } else if (preludeEvent) this.config = preludeEvent.config ?? {};
    else if (progressEvent?.id !== undefined) {
      const { id, message = '', received = 0, total = 0, done = false } = progressEvent;
      if (this.downloads.get(id)?.isDone !== true)
        this.downloads.set(id, { id, message, received, total, isDone: done });
    } else if (errorEvent) this.#keep(event, null, { severity: 'error', message: errorEvent.error ?? '' });
    else if (stdoutEvent) this.#keep(event, null, { severity: 'info', message: stdoutEvent.message ?? '' });
    else if (event.cancelEvent) this.hasEnded = true;
  }

  #begin(step: StepMetadata, timestamp: number): void {
    const row = this.#rowOf(step);
    const steps = this.#stepsOf(step.urn);
    row.startedAt = Math.min(row.startedAt ?? timestamp, timestamp);
    // The event about its end may have arrived first.
    if (!steps.over.has(step.op)) steps.open.add(step.op);
    this.#settle(row, steps);
  }

  #end(step: StepMetadata, timestamp: number, failed: boolean): void {
    const row = this.#rowOf(step);
    const steps = this.#stepsOf(step.urn);
    row.startedAt ??= timestamp;
    row.endedAt = Math.max(row.endedAt ?? timestamp, timestamp);
    row.activity = null;
    steps.open.delete(step.op);
    steps.over.add(step.op);
    steps.failed ||= failed;
    if (!failed) this.doneByOperation.set(step.op, (this.doneByOperation.get(step.op) ?? 0) + 1);
    this.#settle(row, steps);
  }

  #settle(row: ResourceRow, steps: { open: Set<Operation>; failed: boolean }): void {
    const before = row.status;
    row.status = steps.failed ? 'failed' : steps.open.size > 0 ? 'running' : 'done';
    if (before === row.status) return;
    this.runningCount += Number(row.status === 'running') - Number(before === 'running');
    this.failedCount += Number(row.status === 'failed') - Number(before === 'failed');
  }

  #stepsOf(urn: string): { open: Set<Operation>; over: Set<Operation>; failed: boolean } {
    const found = this.#steps.get(urn) ?? { open: new Set(), over: new Set(), failed: false };
    this.#steps.set(urn, found);
    return found;
  }

  #rowOf(step: StepMetadata): ResourceRow {
    const row = this.#findOrCreate(step.urn);
    const state = step.new ?? step.old;
    row.type = step.type ?? state?.type ?? row.type;
    row.isProtected ||= state?.protect === true;
    row.op = replaceOperations.has(row.op) || replaceOperations.has(step.op) ? 'replace' : step.op;
    if (step.diffs?.length) row.diffs = step.diffs;
    if (step.detailedDiff) row.detailedDiff = step.detailedDiff;
    // The output event of a step has more details than its start event, and they may arrive in either order.
    if (row.lastStep === null || step.new?.outputs !== undefined) row.lastStep = step;
    const parent = state?.parent;
    if (row.parent === null && parent !== undefined && parent !== '' && parent !== row.urn) this.#attach(row, parent);
    return row;
  }

  #findOrCreate(urn: string): ResourceRow {
    const found = this.rows.get(urn);
    if (found !== undefined) return found;
    const row: ResourceRow = {
      ...{ urn, type: typeInUrn(urn), parent: null, op: 'same', status: 'known', startedAt: null, endedAt: null },
      ...{ diffs: [], detailedDiff: null, isProtected: false, diagnostics: [], worst: null, activity: null },
      ...{ children: [], lastStep: null },
    };
    this.rows.set(urn, row);
    this.roots.add(row);
    const children = this.#orphans.get(urn) ?? [];
    this.#orphans.delete(urn);
    for (const child of children) this.#adopt(row, child);
    return row;
  }

  #attach(row: ResourceRow, parent: string): void {
    row.parent = parent;
    const found = this.rows.get(parent);
    if (found !== undefined) this.#adopt(found, row);
    else {
      const waiting = this.#orphans.get(parent);
      if (waiting === undefined) this.#orphans.set(parent, [row]);
      else waiting.push(row);
    }
  }

  #adopt(parent: ResourceRow, child: ResourceRow): void {
    // A hostile or damaged log may contain a cycle of parents.
    if (child.children.length > 0 && this.#isBelow(child, parent)) {
      child.parent = null;
      return;
    }
    this.roots.delete(child);
    parent.children.push(child);
  }

  #isBelow(top: ResourceRow, row: ResourceRow): boolean {
    for (let at: ResourceRow | undefined = row; at !== undefined; at = this.rows.get(at.parent ?? '')) {
      if (at === top) return true;
    }
    return false;
  }

  #diagnose(event: EngineEvent, from: NonNullable<EngineEvent['diagnosticEvent']>): void {
    const { urn = '', severity = 'info', streamID: streamId = 0 } = from;
    const message = `${isSeverity(from.prefix) ? '' : (from.prefix ?? '')}${from.message ?? ''}`;
    if (from.ephemeral === true) {
      if (urn !== '') this.#findOrCreate(urn).activity = message.trim();
      return;
    }
    const plain = severity === 'info#err' ? 'info' : severities.find((each) => each === severity);
    this.#keep(event, urn === '' ? null : urn, { severity: plain ?? 'info', message, streamId });
  }

  #report(event: EngineEvent, from: NonNullable<EngineEvent['policyEvent']>): void {
    const { policyName: name = '', policyPackName: pack = '', resourceUrn: urn = '' } = from;
    const isMandatory = from.enforcementLevel === 'mandatory';
    const severity = isMandatory ? 'error' : 'warning';
    this.#keep(event, urn === '' ? null : urn, {
      ...{ severity, message: from.message ?? '', policy: { name, pack, isMandatory } },
    });
  }

  #keep(
    { sequence, timestamp }: EngineEvent,
    urn: string | null,
    { severity, message, policy = null, streamId = 0 }: Partial<Diagnostic> & Pick<Diagnostic, 'severity' | 'message'>,
  ): void {
    const row = urn === null ? null : this.#findOrCreate(urn);
    const list = row?.diagnostics ?? this.diagnostics;
    const parts = this.#parts.get(list) ?? [];
    this.#parts.set(list, parts);
    const part = { sequence, timestamp, severity, message, policy, streamId };
    const at = parts.findLastIndex((other) => other.sequence < sequence) + 1;
    parts.splice(at, 0, part);
    if (at === parts.length - 1) this.#join(list, part);
    else this.#joinAgain(list, parts, sequence);
    if (row === null || severity === 'debug' || (message.trim() === '' && policy === null)) return;
    if (row.worst === null || severities.indexOf(severity) > severities.indexOf(row.worst)) row.worst = severity;
  }

  /** Adds a message, or the next part of one. */
  #join(list: Diagnostic[], part: Diagnostic): void {
    const last = list.at(-1);
    if (part.streamId !== 0 && last?.streamId === part.streamId && last.message.length < maxStreamCharacters) {
      last.message += part.message;
    } else if (part.message.trim() !== '' || part.policy !== null) {
      list.push({ ...part });
      if (part.severity !== 'debug') this.diagnosticCounts[part.severity] += 1;
    }
  }

  /** Rebuilds a list as if the part with `sequence` had arrived in order. */
  #joinAgain(list: Diagnostic[], parts: readonly Diagnostic[], sequence: number): void {
    const from = Math.max(
      0,
      list.findLastIndex((message) => message.sequence < sequence),
    );
    const first = Math.min(list[from]?.sequence ?? sequence, sequence);
    for (const { severity } of list.splice(from)) if (severity !== 'debug') this.diagnosticCounts[severity] -= 1;
    for (const part of parts.slice(parts.findIndex((each) => each.sequence >= first))) this.#join(list, part);
  }
}

/** Whether a prefix only repeats the severity, as in "error: ". */
function isSeverity(prefix = ''): boolean {
  return /^(debug|info|warning|error):?$/.test(stripColors(prefix).trim());
}

function typeInUrn(urn: string): string {
  const types = urn.split('::')[2] ?? '';
  return types.slice(types.lastIndexOf('$') + 1);
}
