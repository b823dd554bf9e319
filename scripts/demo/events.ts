import type { StateResource, Step } from './deployment.ts';

/** An engine event without its number and time. */
export type EventPayload = Readonly<Record<string, unknown>>;

/** How an update ends. A failed one names the resource that could not be changed, and why. */
export type Ending =
  | { readonly result: 'succeeded' }
  | { readonly result: 'failed'; readonly urn: string; readonly reason: string };

/** The events of a run, in groups that belong together: one per step, with what comes first and last. */
export function eventsOf(
  steps: readonly Step[],
  {
    config,
    ending,
    isPreview,
    seconds,
  }: { config: Readonly<Record<string, string>>; ending: Ending; isPreview: boolean; seconds: number },
): EventPayload[][] {
  const groups: EventPayload[][] = [[{ preludeEvent: { config } }]];
  const changes: Record<string, number> = {};
  for (const step of steps) {
    const resource = (step.after ?? step.before) as StateResource;
    const metadata = metadataOf(step, resource);
    const begin = { resourcePreEvent: { metadata, planning: isPreview } };
    if (ending.result === 'failed' && ending.urn === resource.urn) {
      const message = `<{%reset%}><{%fg 1%}>error: <{%reset%}>${ending.reason}<{%reset%}>\n`;
      groups.push([
        begin,
        {
          diagnosticEvent: {
            urn: resource.urn,
            prefix: '<{%fg 1%}>error: <{%reset%}>',
            message,
            color: 'raw',
            severity: 'error',
          },
        },
        { resOpFailedEvent: { metadata, status: 0, steps: 1 } },
      ]);
      break;
    }
    changes[step.operation] = (changes[step.operation] ?? 0) + 1;
    const group: EventPayload[] = [begin];
    if (step.operation !== 'same' && resource.type.endsWith(':Deployment')) {
      const message = `<{%fg 13%}>${resource.type}<{%reset%}> waiting for the rollout to finish: <{%bold%}>1 of 2<{%reset%}> replicas are ready\n`;
      group.push({ diagnosticEvent: { urn: resource.urn, message, color: 'raw', severity: 'info', ephemeral: true } });
    }
    group.push({ resOutputsEvent: { metadata, planning: isPreview } });
    groups.push(group);
  }
  const summary = {
    maybeCorrupt: ending.result === 'failed',
    durationSeconds: seconds,
    resourceChanges: changes,
    PolicyPacks: {},
  };
  groups.push([{ summaryEvent: { ...summary, isPreview, result: ending.result } }, { cancelEvent: {} }]);
  return groups;
}

function metadataOf({ after, before, operation }: Step, resource: StateResource): object {
  const changed = operation === 'update' ? changedInputs(before, after) : [];
  return {
    op: operation,
    urn: resource.urn,
    type: resource.type,
    old: before && inEvent(before),
    new: after && inEvent(after),
    ...(changed.length > 0 ? { diffs: changed } : {}),
    detailedDiff:
      changed.length > 0
        ? Object.fromEntries(changed.map((path) => [path, { diffKind: 'update', inputDiff: true }]))
        : null,
    logical: true,
    provider: resource.provider ?? '',
  };
}

/** A resource as events show it: secrets are hidden. */
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
