import { eventListTexts } from './texts.tsx';

/** As named by Pulumi. Newer CLIs may send others. */
export type Operation = string;

/** As engine events describe it. Secret values are already redacted. */
export interface StepState {
  type?: string;
  urn?: string;
  custom?: boolean;
  id?: string;
  parent?: string;
  protect?: boolean;
  provider?: string;
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
}

/** The step of an event about a resource. */
export interface StepMetadata {
  op: Operation;
  urn: string;
  type?: string;
  old?: StepState | null;
  new?: StepState | null;
  keys?: string[];
  diffs?: string[];
  detailedDiff?: Record<string, { diffKind?: string; inputDiff?: boolean }> | null;
  logical?: boolean;
  provider?: string;
}

/** One of the payloads is set, and any field may be missing. */
export interface EngineEvent {
  sequence: number;
  /** Unix time in seconds; the CLI sends no fractions. */
  timestamp: number;
  cancelEvent?: object;
  stdoutEvent?: { message?: string };
  diagnosticEvent?: {
    urn?: string;
    prefix?: string;
    message?: string;
    severity?: string;
    streamID?: number;
    ephemeral?: boolean;
  };
  preludeEvent?: { config?: Record<string, unknown> };
  summaryEvent?: {
    maybeCorrupt?: boolean;
    durationSeconds?: number;
    resourceChanges?: Record<string, number>;
    PolicyPacks?: Record<string, string>;
    isPreview?: boolean;
    result?: string;
  };
  resourcePreEvent?: { metadata: StepMetadata; planning?: boolean };
  resOutputsEvent?: { metadata: StepMetadata; planning?: boolean };
  resOpFailedEvent?: { metadata: StepMetadata; status?: number; steps?: number };
  policyEvent?: {
    resourceUrn?: string;
    message?: string;
    policyName?: string;
    policyPackName?: string;
    policyPackVersion?: string;
    enforcementLevel?: string;
  };
  progressEvent?: { type?: string; id?: string; message?: string; received?: number; total?: number; done?: boolean };
  errorEvent?: { error?: string };
}

/** The name of a kind is that of its payload. */
export const eventKinds = (Object.keys(eventListTexts.kinds) as (keyof typeof eventListTexts.kinds)[]).map((kind) => ({
  kind,
  label: eventListTexts.kinds[kind],
}));

/** The year 9999: dates end soon after, and their formats throw. */
const maxTimestamp = 253_402_300_799;

type Shape = 'string' | 'number' | 'boolean' | 'object' | 'strings' | 'numbers' | { readonly [field: string]: Shape };

const state: Shape = {
  ...{ type: 'string', id: 'string', parent: 'string', provider: 'string' },
  ...{ custom: 'boolean', protect: 'boolean', inputs: 'object', outputs: 'object' },
};
const step: Shape = {
  metadata: {
    ...{ op: 'string', urn: 'string', type: 'string', provider: 'string', logical: 'boolean' },
    ...{ old: state, new: state, keys: 'strings', diffs: 'strings', detailedDiff: 'object' },
  },
};
const payloads: { readonly [payload: string]: Shape } = {
  ...{ resourcePreEvent: step, resOutputsEvent: step, resOpFailedEvent: step },
  diagnosticEvent: {
    ...{ urn: 'string', prefix: 'string', message: 'string', severity: 'string' },
    ...{ streamID: 'number', ephemeral: 'boolean' },
  },
  stdoutEvent: { message: 'string' },
  preludeEvent: { config: 'object' },
  summaryEvent: {
    ...{ maybeCorrupt: 'boolean', durationSeconds: 'number', resourceChanges: 'numbers', result: 'string' },
  },
  policyEvent: {
    ...{ resourceUrn: 'string', message: 'string', policyName: 'string', policyPackName: 'string' },
    ...{ policyPackVersion: 'string', enforcementLevel: 'string' },
  },
  progressEvent: {
    ...{ type: 'string', id: 'string', message: 'string', received: 'number', total: 'number', done: 'boolean' },
  },
  errorEvent: { error: 'string' },
  cancelEvent: {},
};

/**
 * An event from the server, without fields of other types than the CLI sends: any client may store such an event. Returns null if nothing
 * is left, because one bad event must not hide the others.
 */
export function readEvent(value: unknown): EngineEvent | null {
  if (!isObject(value) || typeof value['sequence'] !== 'number' || typeof value['timestamp'] !== 'number') return null;
  const event = withShape(value, payloads) as unknown as EngineEvent;
  event.timestamp = Math.min(Math.max(value['timestamp'], 0), maxTimestamp);
  for (const payload of [event.resourcePreEvent, event.resOutputsEvent, event.resOpFailedEvent])
    if (payload !== undefined && (payload.metadata?.urn === undefined || payload.metadata.op === undefined))
      return null;
  return event;
}

/** The object without known fields of a wrong type. */
function withShape(value: Record<string, unknown>, shape: { readonly [field: string]: Shape }) {
  const result = { ...value };
  for (const [field, wanted] of Object.entries(shape)) {
    const found = value[field];
    if (typeof wanted === 'object' && isObject(found)) result[field] = withShape(found, wanted);
    else if (!hasShape(found, wanted)) delete result[field];
  }
  return result;
}

function hasShape(value: unknown, shape: Shape): boolean {
  if (shape === 'object') return isObject(value);
  if (shape === 'strings') return Array.isArray(value) && value.every((each) => typeof each === 'string');
  if (shape === 'numbers') return isObject(value) && Object.values(value).every((each) => typeof each === 'number');
  return typeof value === shape;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The text is one line, with the CLI's color tags. */
export function describeEvent(event: EngineEvent): { kind: string; label: string; urn: string | null; text: string } {
  const found = eventKinds.find(({ kind }) => event[kind] !== undefined);
  const { kind, label } = found ?? { kind: otherKind(event), label: otherKind(event) };
  const step = (event.resourcePreEvent ?? event.resOutputsEvent ?? event.resOpFailedEvent)?.metadata;
  const urn = step?.urn ?? event.diagnosticEvent?.urn ?? event.policyEvent?.resourceUrn ?? null;
  return { kind, label, urn: urn === '' ? null : urn, text: eventText(event, step) };
}

function eventText(event: EngineEvent, step: StepMetadata | undefined): string {
  if (step !== undefined) {
    const changed = step.diffs?.length ? ` · ${step.diffs.join(', ')}` : '';
    return `${step.op}${changed}`;
  }
  if (event.diagnosticEvent) return `${event.diagnosticEvent.prefix ?? ''}${event.diagnosticEvent.message ?? ''}`;
  if (event.policyEvent) return `${event.policyEvent.policyName ?? ''}: ${event.policyEvent.message ?? ''}`;
  if (event.stdoutEvent) return event.stdoutEvent.message ?? '';
  if (event.progressEvent) return event.progressEvent.message ?? event.progressEvent.id ?? '';
  if (event.errorEvent) return event.errorEvent.error ?? '';
  if (event.preludeEvent) return eventListTexts.settings(Object.keys(event.preludeEvent.config ?? {}).length);
  if (event.summaryEvent) {
    const changes = Object.entries(event.summaryEvent.resourceChanges ?? {});
    return changes.map(([op, count]) => `${count} ${op}`).join(', ');
  }
  return '';
}

function otherKind(event: EngineEvent): string {
  return Object.keys(event).find((key) => key.endsWith('Event')) ?? 'event';
}
