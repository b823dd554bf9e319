import { DeferredError } from '../../shared/updates/deferred.ts';
import { type CallRefusalReason, createRefusedRunRepository } from '../../shared/updates/refused-run-repository.ts';
import { StackBusyError } from '../../shared/updates/update-errors.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { runView } from './queue/run-view.ts';
import { ConsumersError } from './rules/consumers.ts';
import { PreviewNeededError } from './rules/preview-check.ts';
import type { PreparedCreation } from './update-creation.ts';

interface Refused {
  readonly error: unknown;
  readonly caller: Caller;
  readonly waitedMs: number;
}

/**
 * Records a refused run for the pages about CI, in a separate statement on which the refusal does not depend. A superseded run is recorded
 * when it is superseded.
 */
export async function noteRefusal(
  { db, logger }: Pick<ApiContext, 'db' | 'logger'>,
  { environment, kind, organizationId, stackId }: PreparedCreation,
  { caller, error, waitedMs }: Refused,
): Promise<void> {
  const reason = reasonOf(error);
  if (reason === null) return;
  const { branch, commit, url } = runView(kind, environment);
  const run = {
    organizationId,
    stackId,
    reason,
    kind,
    // Visible to all readers of the stack, not only to the refused caller.
    message: error instanceof ConsumersError ? error.shared : (error as Error).message,
    commit,
    branch,
    url,
    waitedMs,
  };
  await createRefusedRunRepository(db)
    .insert({ ...run, tokenId: caller.tokenId, requestedBy: caller.login })
    .catch((fault: unknown) => logger.warn({ err: fault }, 'a refused run could not be recorded'));
}

function reasonOf(error: unknown): CallRefusalReason | null {
  if (error instanceof StackBusyError) return 'busy';
  if (error instanceof DeferredError) return error.reason;
  if (error instanceof PreviewNeededError) return 'preview-needed';
  return error instanceof ConsumersError ? 'has-consumers' : null;
}
