import type { Command } from 'commander';
import { createGrantRepository, type GrantRepository } from '../../shared/identity/grant-repository.ts';
import { createIdentityRepository, type IdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPeopleRepository, type PeopleRepository } from '../../shared/identity/people-repository.ts';
import { createTeamRepository, type TeamRepository } from '../../shared/identity/team-repository.ts';
import { createTokenRepository, type TokenRepository } from '../../shared/identity/token-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import { describeLoss } from '../../shared/updates/lease.ts';
import { endLostUpdates } from '../../shared/updates/lost-leases.ts';
import type { OpenSession } from './admin-session.ts';
import { operator } from './operator.ts';

/** The transaction of one command. */
export interface Work {
  readonly identity: IdentityRepository;
  readonly people: PeopleRepository;
  readonly teams: TeamRepository;
  readonly grants: GrantRepository;
  readonly tokens: TokenRepository;
  /** Prints a line to stdout after the commit. */
  say(line: string): void;
}

/** Runs a command with its arguments, followed by its options. If it throws, nothing is changed. */
type Run<Given extends unknown[]> = (work: Work, ...given: Given) => Promise<void>;

/** Returns the action of a command that reads organizations, users and tokens. */
export function questionAction<Given extends unknown[]>(open: OpenSession, run: Run<Given>) {
  return async (...given: [...Given, Command]): Promise<void> => {
    const withoutCommand = given.slice(0, -1) as Given;
    const lines = await open().withDatabase((db) =>
      runInTransaction(db, (work) => run(work, ...withoutCommand), { locks: false }),
    );
    for (const line of lines) console.log(line);
  };
}

/**
 * Returns the action of a command that changes organizations, users and tokens, in one transaction with one line in the
 * audit log. Updates that lose their lease are cancelled afterwards.
 */
export function changeAction<Given extends unknown[]>(open: OpenSession, run: Run<Given>) {
  return async (...given: [...Given, Command]): Promise<void> => {
    const session = open();
    const command = given.at(-1) as Command;
    const withoutCommand = given.slice(0, -1) as Given;
    await session.withDatabase(async (db) => {
      const lines = await runInTransaction(db, (work) => run(work, ...withoutCommand), { locks: true });
      for (const line of lines) console.log(line);
      const entry = { audit: fullName(command), by: operator(), arguments: command.args, ...command.opts() };
      session.logger.warn(entry, 'operator');
      for (const { updateId, reason } of await endLostUpdates(db))
        if (reason !== 'lease-expired') console.log(`Update ${updateId} was cancelled: ${describeLoss(reason)}.`);
    });
  };
}

/** `team add` for a command of a group. */
function fullName(command: Command): string {
  const { parent } = command;
  return parent && parent.name() !== 'admin' ? `${parent.name()} ${command.name()}` : command.name();
}

async function runInTransaction(
  db: Database,
  run: (work: Work) => Promise<void>,
  { locks }: { locks: boolean },
): Promise<readonly string[]> {
  return db.inTransaction(async (tx) => {
    const people = createPeopleRepository(tx);
    if (locks) await people.lock();
    // Created in here, because the transaction is retried on a conflict.
    const lines: string[] = [];
    await run({
      identity: createIdentityRepository(tx),
      people,
      teams: createTeamRepository(tx),
      grants: createGrantRepository(tx),
      tokens: createTokenRepository(tx),
      say: (line) => void lines.push(line),
    });
    return lines;
  });
}
