import type { StateResource, Step } from './deployment.ts';
import { type StepTimes, scheduleOf } from './schedule.ts';

/** An engine event without its number and time. */
export type EventPayload = Readonly<Record<string, unknown>>;

/** The result of an update. A failed update names the resource that could not be changed, and the reason. */
export type Ending =
  | { readonly result: 'succeeded' }
  | { readonly result: 'failed'; readonly urn: string; readonly reason: string };

/** In ms: since the beginning of its run, or since 1970. */
export interface TimedEvent {
  readonly atMs: number;
  readonly payload: EventPayload;
}

/** The events of a run in order, with the times that the steps would take. */
export function timelineOf(
  steps: readonly Step[],
  {
    config,
    ending,
    isPreview,
    seconds,
  }: { config: Readonly<Record<string, string>>; ending: Ending; isPreview: boolean; seconds: number },
): TimedEvent[] {
  const brokenAt =
    ending.result === 'failed' ? steps.findIndex(({ after }) => after !== null && after.urn === ending.urn) : -1;
  const done = brokenAt < 0 ? steps : steps.slice(0, brokenAt + 1);
  const times = scheduleOf(done, seconds);
  const changes: Record<string, number> = {};
  const timeline: TimedEvent[] = [];
  for (const [at, step] of done.entries()) {
    const { beganMs, endedMs } = times[at] as StepTimes;
    const resource = (step.after ?? step.before) as StateResource;
    const metadata = metadataOf(step, resource);
    const add = (atMs: number, payload: EventPayload): number => timeline.push({ atMs, payload });
    add(beganMs, { resourcePreEvent: { metadata, planning: isPreview } });
    if (at === brokenAt && ending.result === 'failed') {
      add(endedMs, { diagnosticEvent: failureOf(resource.urn, ending.reason) });
      add(endedMs, { resOpFailedEvent: { metadata, status: 0, steps: 1 } });
      const stack = done.find(({ after }) => after?.type === 'pulumi:pulumi:Stack')?.after;
      // The engine ends a failed update with this message.
      if (stack) add(endedMs, { diagnosticEvent: failureOf(stack.urn, 'update failed') });
      continue;
    }
    changes[step.operation] = (changes[step.operation] ?? 0) + 1;
    if (step.operation !== 'same' && resource.type.endsWith(':Deployment')) {
      const message = `<{%fg 13%}>${resource.type}<{%reset%}> waiting for the rollout to finish: <{%bold%}>1 of 2<{%reset%}> replicas are ready\n`;
      const diagnosticEvent = { urn: resource.urn, message, color: 'raw', severity: 'info', ephemeral: true };
      add((beganMs + endedMs) / 2, { diagnosticEvent });
    }
    add(endedMs, { resOutputsEvent: { metadata, planning: isPreview } });
  }
  const summary = {
    maybeCorrupt: ending.result === 'failed',
    durationSeconds: seconds,
    resourceChanges: changes,
    PolicyPacks: {},
  };
  const endMs = seconds * 1000;
  return [
    { atMs: 0, payload: { preludeEvent: { config } } },
    ...timeline.sort((a, b) => a.atMs - b.atMs),
    { atMs: endMs, payload: { summaryEvent: { ...summary, isPreview, result: ending.result } } },
    { atMs: endMs, payload: { cancelEvent: {} } },
  ];
}

function failureOf(urn: string, reason: string): object {
  const prefix = '<{%fg 1%}>error: <{%reset%}>';
  return { urn, prefix, message: `${reason}<{%reset%}>\n`, color: 'raw', severity: 'error' };
}

function metadataOf({ after, before, operation }: Step, resource: StateResource): object {
  const changed = operation === 'update' || operation === 'replace' ? changedInputs(before, after) : [];
  return {
    op: operation,
    urn: resource.urn,
    type: resource.type,
    old: before && inEvent(before),
    new: after && inEvent(after),
    ...(changed.length > 0 ? { diffs: changed } : {}),
    detailedDiff:
      changed.length > 0
        ? Object.fromEntries(
            changed.map((path) => [
              path,
              { diffKind: operation === 'replace' ? 'update-replace' : 'update', inputDiff: true },
            ]),
          )
        : null,
    logical: true,
    provider: resource.provider ?? '',
  };
}

/** Secrets are hidden. */
function inEvent({ custom, id, inputs, outputs, parent, protect, provider, type, urn }: StateResource): object {
  const hidden = JSON.parse(JSON.stringify({ inputs: inputs ?? {}, outputs: outputs ?? {} }), (name, value) =>
    name === 'ciphertext' ? '[secret]' : value,
  ) as object;
  return {
    type,
    urn,
    custom,
    id: id ?? '',
    parent: parent ?? '',
    protect: protect ?? false,
    provider: provider ?? '',
    ...hidden,
  };
}

function changedInputs(before: StateResource | null, after: StateResource | null): string[] {
  const [old, next] = [before?.inputs ?? {}, after?.inputs ?? {}];
  const names = new Set([...Object.keys(old), ...Object.keys(next)]);
  return [...names].filter((name) => JSON.stringify(old[name]) !== JSON.stringify(next[name]));
}
