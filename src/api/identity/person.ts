import type { Queryable } from '../../shared/platform/db/sql.ts';
import { ForbiddenError } from '../../shared/platform/errors/errors.ts';
import { lockOwner } from '../access/locked-access.ts';
import type { Caller, Session } from '../platform/http/request.ts';
import type { SessionService } from './sign-in/session-service.ts';

export interface Person {
  readonly userId: string;
  readonly login: string;
  /** Keeps the person's credential valid until the end of the transaction. Throws UnauthenticatedError. */
  hold(tx: Queryable): Promise<void>;
}

/** Tokens of an organization or a team and scoped tokens are refused. */
export function personOf(caller: Caller): Person {
  const { isScoped, login, userId } = caller;
  if (userId === null) throw new ForbiddenError('This token belongs to no user, so it has no memberships of its own');
  if (isScoped) throw new ForbiddenError('A token with scopes cannot accept invitations or leave organizations');
  return { userId, login, hold: (tx) => lockOwner(tx, caller) };
}

export function personOfSession(session: Session, sessions: SessionService): Person {
  return { userId: session.userId, login: session.login, hold: (tx) => sessions.hold(tx, session) };
}
