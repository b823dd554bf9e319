import type { AuditAction } from '../../../shared/audit/audit-actions.ts';
import { createAuditListRepository, type ListedEventRow } from '../../../shared/audit/audit-list-repository.ts';
import type { Queryable } from '../../../shared/platform/db/sql.ts';
import type { LastEdit } from './revisions.ts';

/** Older edits are not searched. */
const maxEvents = 100;

/** Finds the newest event of the action, for the message of a conflict. */
export async function findLastEdit(
  db: Queryable,
  organizationId: string,
  action: AuditAction,
  isMeant: (event: ListedEventRow) => boolean,
): Promise<LastEdit | null> {
  const selection = { action, login: null, actor: null, from: null, until: null, after: null };
  const events = await createAuditListRepository(db).list(organizationId, selection, maxEvents);
  const event = events.find((each) => each.outcome === 'done' && isMeant(each));
  return event === undefined ? null : { by: event.login === '' ? null : event.login, at: event.occurredAt };
}
