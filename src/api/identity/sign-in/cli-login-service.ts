import { randomBytes } from 'node:crypto';
import { createTokenRepository } from '../../../shared/identity/token-repository.ts';
import { mintToken } from '../../../shared/platform/crypto/secret-token.ts';
import type { Database } from '../../../shared/platform/db/database.ts';
import { InvalidRequestError } from '../../../shared/platform/errors/errors.ts';
import { recordOfPerson } from '../../audit/personal-events.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Session } from '../../platform/http/request.ts';
import { assertTokenLimit } from '../max-tokens.ts';
import type { SessionService } from './session-service.ts';

/** Passed when the CLI opens a browser (pkg/backend/httpstate/backend.go). */
export interface CliLogin {
  /** The CLI waits there on the browser's machine. */
  readonly port: number;
  /** Passed back, so that the CLI can recognize the answer to its request. */
  readonly nonce: string;
  readonly description: string;
}

const maxDescriptionChars = 200;

export function readCliLogin(given: {
  readonly cliSessionPort?: string;
  readonly cliSessionNonce?: string;
  readonly cliSessionDescription?: string;
}): CliLogin {
  const { cliSessionDescription = '', cliSessionNonce = '', cliSessionPort = '' } = given;
  const port = /^\d{1,5}$/.test(cliSessionPort) ? Number(cliSessionPort) : 0;
  if (port < 1 || port > 65_535 || !/^[0-9a-f]{16,128}$/i.test(cliSessionNonce))
    throw new InvalidRequestError(
      'This page is opened by `pulumi login`: it needs the port and nonce that the CLI sends',
    );
  // Anybody can make a link to this page, so the description becomes plain text on one line.
  const description = [...cliSessionDescription.toWellFormed().replace(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ')]
    .slice(0, maxDescriptionChars)
    .join('');
  return { port, nonce: cliSessionNonce, description };
}

/** Always on the machine of the browser. */
export function cliOrigin({ port }: CliLogin): string {
  return `http://localhost:${port}`;
}

/** Gives the CLI a personal token of the person who is signed in with the browser. */
export class CliLoginService {
  readonly #db: Database;
  readonly #sessions: SessionService;

  constructor(db: Database, sessions: SessionService) {
    this.#db = db;
    this.#sessions = sessions;
  }

  /**
   * Returns the URL that hands the token to the CLI. Throws UnauthenticatedError if the session has ended, and ConflictError if there are
   * too many tokens.
   */
  async allow(session: Session, login: CliLogin, audit: AuditTrail): Promise<string> {
    const { token, hash } = mintToken('hf-');
    const { userId } = session;
    const name = `cli ${new Date().toISOString().slice(0, 16).replace('T', ' ')} ${randomBytes(3).toString('hex')}`;
    const description = login.description || 'pulumi login with a browser';
    await this.#db.inTransaction(async (tx) => {
      await this.#sessions.hold(tx, session);
      await assertTokenLimit(tx, 'personal', { userId });
      // The database limits the lifetime of the token to the maximum of its user's organizations.
      const made = await createTokenRepository(tx).insert({
        owner: { kind: 'personal', userId },
        hash,
        name,
        description,
        scopes: null,
        expiresAt: null,
        createdBy: userId,
      });
      const details = { kind: 'personal', name, description, session: session.id };
      await recordOfPerson(tx, audit, { login: session.login, object: made.id, details });
    });
    const address = new URL(cliOrigin(login));
    address.search = new URLSearchParams({ accessToken: token, nonce: login.nonce }).toString();
    return address.href;
  }
}
