import { AuditTrail } from '../../src/api/platform/audit-trail/audit-trail.ts';
import type { AuditAction } from '../../src/shared/audit/audit-actions.ts';
import { operatorSource } from '../../src/shared/audit/audit-event.ts';
import { ReadOnlyMode } from '../../src/shared/platform/read-only/read-only-mode.ts';
import { query } from './database.ts';
import type { TestApp } from './test-app.ts';

/** A trail for services that a test calls without a request. */
export function testTrail(action: AuditAction): AuditTrail {
  return new AuditTrail(operatorSource('test'), action, new ReadOnlyMode());
}

/** An event of the audit log as stored. */
export interface StoredEvent extends Record<string, unknown> {
  readonly number: string;
  readonly action: string;
  readonly outcome: string;
  readonly login: string;
  readonly object: string;
  readonly details: Record<string, unknown>;
}

/** The events of the server's log about somebody's account, oldest first. */
export async function listPersonalEvents(app: TestApp, login: string): Promise<StoredEvent[]> {
  return (await listEvents(app, '')).filter((event) => [event.login, event.object].includes(login));
}

/** The events of an organization, or with '' of the server, oldest first. */
export function listEvents(app: TestApp, organization: string): Promise<StoredEvent[]> {
  return query<StoredEvent>(
    app,
    `select number, action, outcome, actor, login, user_id, token_id, token_name, sign_in, role, granted_by, address, user_agent, ci_run, object,
       update_id, request_id, details::json as details
     from audit_events where organization = $1 order by number`,
    [organization],
  );
}
