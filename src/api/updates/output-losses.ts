import type { EventReader } from '../../shared/events/event-reader.ts';
import { textOf } from '../../shared/events/event-text.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { formatUrn, rootStackType } from '../../shared/state/deployments/urn.ts';
import { recordWebhookEvent } from '../../shared/webhooks/record-webhook-event.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { findAllConsumers } from './rules/all-consumers.ts';
import { listOutputs, outputLossOf } from './rules/output-loss.ts';
import { createOutputLossRepository, type RemovedOutputs, type WatchedUpdate } from './rules/output-loss-repository.ts';

const maxEventBytes = 8 * 1024 * 1024;
const appetite = { events: 1, bytes: maxEventBytes };

/** Outputs that an update has removed from a stack with a consumers rule. */
export interface OutputLosses extends RemovedOutputs {
  readonly watched: WatchedUpdate;
  /** Null if unknown. */
  readonly consumers: number | null;
}

/**
 * Outputs that an ending update has removed, or that a preview would remove; null without a consumers rule. If the events cannot be read,
 * the update ends all the same, and its removals are unknown, which rules do not treat as none.
 */
export async function findOutputLosses(
  { db, eventReader, logger, metrics }: Pick<ApiContext, 'db' | 'eventReader' | 'logger' | 'metrics'>,
  updateId: string,
): Promise<OutputLosses | null> {
  const watched = await createOutputLossRepository(db).findWatched(updateId);
  if (!watched) return null;
  let names: readonly string[];
  try {
    names = await readOutputLoss(eventReader, updateId, watched);
  } catch (error) {
    metrics.outputChecksFailed.inc();
    logger.warn({ updateId, err: error }, 'outputs: could not determine whether this update removes any');
    return { watched, names: [], isUnknown: true, consumers: null };
  }
  // Only watched previews record that they remove no outputs.
  if (names.length === 0) return watched.isPreview ? { watched, names, isUnknown: false, consumers: 0 } : null;
  // Counted first: the transaction that ends the update must not wait for the count.
  const consumers = await findAllConsumers(db, watched);
  return { watched, names, isUnknown: false, consumers: consumers?.count ?? null };
}

/** Called in the transaction that ends the update. Notifies webhooks if other stacks read the outputs. */
export async function recordOutputLosses(
  tx: Queryable,
  { stackId, updateId }: { readonly stackId: string; readonly updateId: string },
  { consumers, isUnknown, names, watched }: OutputLosses,
): Promise<void> {
  await createOutputLossRepository(tx).insert(updateId, { isUnknown, names });
  if (isUnknown || consumers === 0) return;
  const readBy =
    consumers === null
      ? 'it is not known which stacks read them'
      : `read by ${consumers} ${consumers === 1 ? 'stack' : 'stacks'}`;
  const text = `${watched.isPreview ? 'a preview would remove' : 'an update has removed'} ${listOutputs(names)}; ${readBy}`;
  const { organizationId } = watched;
  const details = { text, outputs: names.slice(0, 100), consumers, isPreview: watched.isPreview };
  await recordWebhookEvent(tx, 'outputs_removed', { organizationId, stackId, updateId, details });
}

/**
 * Reads the last event about the outputs of the stack. Empty if there is none: the program failed, or a policy of the CLI drops the event.
 */
async function readOutputLoss(events: EventReader, updateId: string, watched: WatchedUpdate): Promise<string[]> {
  // If its stack is renamed, a preview continues under the former name.
  const names = [watched, ...(JSON.parse(watched.formerNames) as Pick<StackRef, 'project' | 'stack'>[])];
  for (const { project, stack } of names) {
    const urn = formatUrn({ stack, project, type: rootStackType, name: `${project}-${stack}` });
    const selection = { beyond: Number.MAX_SAFE_INTEGER, newestFirst: true, urn, types: ['resOutputsEvent'] };
    for await (const [event] of events.read({ id: updateId, mayHaveRows: true }, selection, appetite))
      if (event) {
        if (event.bytes > maxEventBytes) throw new Error(`the event about outputs has ${event.bytes} bytes`);
        return outputLossOf(await textOf(event));
      }
  }
  return [];
}
