import { cutText } from '../platform/text/cut-text.ts';
import { urnKey } from '../state/deployments/live-urns.ts';

/** A step of the engine with its times, in seconds since the epoch: the client sends whole seconds. */
export interface Step {
  readonly urn: string;
  readonly type: string;
  /** Such as `create` or `delete-replaced`. */
  readonly operation: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly isFailed: boolean;
}

/** The types of events about steps. */
export const stepEventTypes = ['resourcePreEvent', 'resOutputsEvent', 'resOpFailedEvent'] as const;

/** More steps than these are counted, and their times are not compared. */
const maxSteps = 20_000;
/** Maximum length of a URN; no program produces longer ones. */
const maxUrnChars = 4_000;

/** Steps that do nothing to a resource. */
const idle: ReadonlySet<string> = new Set(['same', 'read', 'refresh', 'replace', 'discard', 'remove-pending-replace']);
/** Most events are about unchanged resources: only the others are parsed. */
const mayBeStep = /"op"\s*:\s*"(?!(?:same|read|refresh|replace|discard)")/;

/** Collects the steps of an update from its events, in their order. Keeps `maxSteps` at most. */
export class StepTimes {
  readonly #open = new Map<
    string,
    { readonly startedAt: number; readonly type: string; readonly urn: string; readonly operation: string }
  >();
  readonly #steps: Step[] = [];
  #count = 0;

  /** The steps that have ended, in the order of their ends. */
  get steps(): readonly Step[] {
    return this.#steps;
  }

  /** Whether there were more than are kept. */
  get isCut(): boolean {
    return this.#count > this.#steps.length + this.#open.size;
  }

  /** Adds an event as its client has sent it. Events that are not about a step are ignored. */
  add(text: string): void {
    if (!mayBeStep.test(text)) return;
    const event = parsedEvent(text);
    const { timestamp: at } = event;
    const begun = metadataOf(event['resourcePreEvent']);
    if (begun) {
      this.#count++;
      if (this.#open.size + this.#steps.length < maxSteps)
        this.#open.set(begun.key, { ...begun, startedAt: timeOf(at) });
      return;
    }
    const failed = metadataOf(event['resOpFailedEvent']);
    const ended = failed ?? metadataOf(event['resOutputsEvent']);
    const step = ended && this.#open.get(ended.key);
    if (!step) return;
    this.#open.delete(ended.key);
    const { operation, startedAt, type, urn } = step;
    this.#steps.push({
      urn,
      type,
      operation,
      startedAt,
      endedAt: Math.max(startedAt, timeOf(at)),
      isFailed: failed !== null,
    });
  }
}

/** The members of an event; none if it is no object. */
export function parsedEvent(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function timeOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

/** The step that an event is about; null if it is about none that changes something. */
export function metadataOf(payload: unknown) {
  const metadata = (payload as { readonly metadata?: Readonly<Record<string, unknown>> | null } | null | undefined)
    ?.metadata;
  const { old, op, type, urn } = metadata ?? {};
  if (typeof op !== 'string' || typeof urn !== 'string' || urn.length > maxUrnChars || op.length > 40 || idle.has(op))
    return null;
  const oldId = (old as { readonly id?: unknown } | null | undefined)?.id;
  return {
    urn,
    operation: op,
    type: typeof type === 'string' ? cutText(type, 300) : '',
    key: `${op} ${urnKey(urn)}`,
    oldId: typeof oldId === 'string' ? urnKey(oldId) : '',
  };
}
