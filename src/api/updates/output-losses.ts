import { formatUrn, rootStackType } from '../../shared/deployments/urn.ts';
import type { EventReader } from '../../shared/events/event-reader.ts';
import { textOf } from '../../shared/events/event-text.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { listOutputs, outputLossOf } from '../../shared/resources/output-loss.ts';
import { createOutputLossRepository, type WatchedUpdate } from '../../shared/resources/output-loss-repository.ts';
import { createResourceRepository } from '../../shared/resources/resource-repository.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { tellWebhooks } from '../../shared/webhooks/tell-webhooks.ts';
import type { ApiContext } from '../api-context.ts';

/** A larger event says nothing here, in bytes. */
const maxEventBytes = 8 * 1024 * 1024;
const appetite = { events: 1, bytes: maxEventBytes };
/** More consumers are not counted. */
const maxConsumers = 200;

/** Outputs that an update has removed, of a stack whose rules care about them. */
interface OutputLosses {
  readonly watched: WatchedUpdate;
  readonly names: readonly string[];
}

/**
 * What an update that is about to end has removed, or a preview would remove; null if nothing, or if no rule cares. Costs one short
 * statement without such a rule. Never throws: an update ends, whether or not its events can be read.
 */
export async function findOutputLosses(
  { db, eventReader, logger }: Pick<ApiContext, 'db' | 'eventReader' | 'logger'>,
  updateId: string,
): Promise<OutputLosses | null> {
  try {
    const watched = await createOutputLossRepository(db).findWatched(updateId);
    const names = watched ? await readOutputLoss(eventReader, updateId, watched) : [];
    return watched && names.length > 0 ? { watched, names } : null;
  } catch (error) {
    logger.warn({ updateId, err: error }, 'outputs: whether this update removes some is not known');
    return null;
  }
}

/** Records what an update has removed in the transaction that ends it, and tells webhooks if other stacks read it. */
export async function recordOutputLosses(
  tx: Queryable,
  { stackId, updateId }: { readonly stackId: string; readonly updateId: string },
  { names, watched }: OutputLosses,
): Promise<void> {
  await createOutputLossRepository(tx).insert(updateId, names);
  const consumers = (await createResourceRepository(tx).listConsumers(watched, maxConsumers)).length;
  if (consumers === 0) return;
  const text = `${watched.isPreview ? 'a preview would remove' : 'an update has removed'} ${listOutputs(names)}; read by ${consumers} ${consumers === 1 ? 'stack' : 'stacks'}`;
  const { organizationId } = watched;
  const details = { text, outputs: names.slice(0, 100), consumers, isPreview: watched.isPreview };
  await tellWebhooks(tx, 'outputs_removed', { organizationId, stackId, updateId, details });
}

/**
 * The names of the outputs that an update or a preview removes, as the last event about the outputs of its stack says. Empty if there
 * is no such event: the program failed, or a policy of the CLI drops it. Throws the errors of EventReader.
 */
async function readOutputLoss(events: EventReader, updateId: string, stack: StackRef): Promise<string[]> {
  const urn = formatUrn({
    stack: stack.stack,
    project: stack.project,
    type: rootStackType,
    name: `${stack.project}-${stack.stack}`,
  });
  const selection = { beyond: Number.MAX_SAFE_INTEGER, newestFirst: true, urn, types: ['resOutputsEvent'] };
  for await (const [event] of events.read({ id: updateId, mayHaveRows: true }, selection, appetite))
    if (event) return event.bytes <= maxEventBytes ? outputLossOf(await textOf(event)) : [];
  return [];
}
