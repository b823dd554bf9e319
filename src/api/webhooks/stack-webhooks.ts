import type { Queryable } from '../../shared/platform/db/sql.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { createWebhookRepository, type StackWebhookRow } from '../../shared/webhooks/webhook-repository.ts';
import { getOrganization } from '../access/organizations.ts';
import { parseContinuation } from '../platform/http/continuation.ts';
import type { Caller } from '../platform/http/request.ts';

const pageSize = 500;

/** A page may be empty although more follow. */
export interface StackWebhookPage {
  readonly hooks: readonly StackWebhookRow[];
  /** Missing on the last page. */
  readonly continuationToken?: string;
}

/** Lists only webhooks of stacks that the caller may administer. */
export async function listStackWebhooks(
  db: Queryable,
  { facts }: Pick<Caller, 'facts'>,
  organization: string,
  continuationToken: string | undefined,
): Promise<StackWebhookPage> {
  const after = continuationToken ? parseContinuation(continuationToken, readPosition) : null;
  const { id } = await getOrganization(db, organization);
  const rows = await createWebhookRepository(db).listOfStacks(id, facts, after, pageSize + 1);
  const page = rows.slice(0, pageSize);
  const hooks = page.filter(({ isShown }) => isShown);
  if (rows.length <= pageSize) return { hooks };
  const [shown, last] = [hooks.at(-1), page.at(-1) as StackWebhookRow];
  // A hidden stack is skipped as a whole, so that the position does not reveal the name of a webhook.
  return { hooks, continuationToken: shown ? `${shown.stackId}/${shown.name}` : `${last.stackId}/` };
}

/** A position without a name is after all webhooks of the stack. */
function readPosition(token: string): { readonly stackId: string; readonly name: string | null } | null {
  const [stackId = '', name = '', ...rest] = token.split('/');
  const isPosition = isUuid(stackId) && /^[A-Za-z0-9._-]{0,32}$/.test(name) && rest.length === 0;
  return isPosition ? { stackId, name: name || null } : null;
}
