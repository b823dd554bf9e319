import type { Command } from 'commander';
import { createGrantRepository, type GrantRepository } from '../../shared/access/grant-repository.ts';
import type { AuditAction } from '../../shared/audit/audit-actions.ts';
import { operatorSource } from '../../shared/audit/audit-event.ts';
import { createAuditRepository } from '../../shared/audit/audit-repository.ts';
import { lockPeople } from '../../shared/identity/bootstrap-repository.ts';
import { createIdentityRepository, type IdentityRepository } from '../../shared/identity/identity-repository.ts';
import { createPasskeyRepository, type PasskeyRepository } from '../../shared/identity/passkey-repository.ts';
import { createPasswordRepository, type PasswordRepository } from '../../shared/identity/password-repository.ts';
import { createPeopleRepository, type PeopleRepository } from '../../shared/identity/people-repository.ts';
import { createProviderRepository, type ProviderRepository } from '../../shared/identity/provider-repository.ts';
import { createSessionRepository, type SessionRepository } from '../../shared/identity/session-repository.ts';
import { createTeamRepository, type TeamRepository } from '../../shared/identity/team-repository.ts';
import { createTokenRepository, type TokenRepository } from '../../shared/identity/token-repository.ts';
import { createIssuerRepository, type IssuerRepository } from '../../shared/identity/trust/issuer-repository.ts';
import type { Database } from '../../shared/platform/db/database.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import { isUuid } from '../../shared/platform/schema/uuid.ts';
import { endRevokedLeases } from '../../shared/updates/end-revoked-leases.ts';
import { describeLoss } from '../../shared/updates/lease-loss.ts';
import type { Printed } from '../output/output-types.ts';
import { jsonText, type OutputName, type outputs } from '../output/outputs.ts';
import type { OpenSession } from './admin-session.ts';
import { logRuleOf } from './audit-log-rules.ts';
import { operator } from './operator-name.ts';

export interface Work {
  readonly identity: IdentityRepository;
  readonly people: PeopleRepository;
  readonly teams: TeamRepository;
  readonly grants: GrantRepository;
  readonly tokens: TokenRepository;
  readonly issuers: IssuerRepository;
  /** The transaction, for use cases that span several repositories. */
  readonly tx: Queryable;
  readonly passkeys: Pick<PasskeyRepository, 'list' | 'removeAll'>;
  readonly passwords: PasswordRepository;
  readonly providers: ProviderRepository;
  readonly sessions: Pick<SessionRepository, 'removeAll'>;
  /** Prints a line to stdout after the commit. */
  say(line: string): void;
  /** Prints one JSON document if the command has --json, otherwise lines. */
  result<Name extends OutputName>(name: Name, data: Printed<(typeof outputs)[Name]>, lines: readonly string[]): void;
  /** Nothing is then recorded. */
  unchanged(): void;
}

/** Runs a command with its arguments, followed by its options. If it throws, nothing is changed. */
type Run<Given extends unknown[]> = (work: Work, ...given: Given) => Promise<void>;

/** For commands that only read. */
export function questionAction<Given extends unknown[]>(open: OpenSession, run: Run<Given>) {
  return async (...given: [...Given, Command]): Promise<void> => {
    const command = given.at(-1) as Command;
    const withoutCommand = given.slice(0, -1) as Given;
    const lines = await open().withDatabase((db) =>
      runInTransaction(db, (work) => run(work, ...withoutCommand), { locks: false, command }),
    );
    for (const line of lines) console.log(line);
  };
}

/** The change and its event in the audit log are one transaction. Updates that lose their lease are cancelled afterwards. */
export function changeAction<Given extends unknown[]>(
  open: OpenSession,
  action: AuditAction,
  run: Run<Given>,
  subjectOf: SubjectOf = argumentOf,
) {
  return async (...given: [...Given, Command]): Promise<void> => {
    const session = open();
    const command = given.at(-1) as Command;
    const withoutCommand = given.slice(0, -1) as Given;
    // With --json, stdout contains only one document.
    const say = command.opts<{ json?: true }>().json ? console.error : console.log;
    await session.withDatabase(async (db) => {
      const change = { locks: true, action, command } as const;
      const lines = await runInTransaction(db, (work) => run(work, ...withoutCommand), change, subjectOf);
      for (const line of lines) console.log(line);
      const entry = { audit: fullName(command), by: operator(), arguments: command.args, ...optionsOf(command) };
      session.logger.warn(entry, 'an operator ran a command');
      try {
        for (const { updateId, reason } of await endRevokedLeases(db))
          if (reason !== 'lease-expired') say(`Update ${updateId} was cancelled: ${describeLoss(reason)}.`);
      } catch (err) {
        // The change is committed and printed: a script must not repeat it.
        session.logger.warn({ err }, 'updates that lost their lease are not cancelled yet; the servers will do it');
      }
    });
  };
}

/** The options that belong to the change. */
function optionsOf(command: Command): Readonly<Record<string, unknown>> {
  const { json: _, ...options } = command.opts<Record<string, unknown>>();
  return options;
}

/** The words of a command below `admin`, for example `team add`. */
function fullName(command: Command): string {
  const { parent } = command;
  return parent && parent.name() !== 'admin' ? `${parent.name()} ${command.name()}` : command.name();
}

async function runInTransaction(
  db: Database,
  run: (work: Work) => Promise<void>,
  change:
    | { readonly locks: false; readonly command: Command }
    | { readonly locks: true; readonly action: AuditAction; readonly command: Command },
  subjectOf: SubjectOf = argumentOf,
): Promise<readonly string[]> {
  return db.inTransaction(async (tx) => {
    const people = createPeopleRepository(tx);
    if (change.locks) await lockPeople(tx);
    const subject = change.locks ? subjectOf(change.command) : null;
    // Read before the change, which may end memberships.
    const before = change.locks && subject ? await organizationsOf(tx, subject, change.action) : [];
    // Created inside, because the transaction is retried on a conflict.
    const lines: string[] = [];
    let isChanged = true;
    await run({
      identity: createIdentityRepository(tx),
      people,
      teams: createTeamRepository(tx),
      grants: createGrantRepository(tx),
      tokens: createTokenRepository(tx),
      issuers: createIssuerRepository(tx),
      tx,
      passkeys: createPasskeyRepository(tx),
      passwords: createPasswordRepository(tx),
      providers: createProviderRepository(tx),
      sessions: createSessionRepository(tx, { idleSeconds: 0, maxSeconds: 0 }),
      say: (line) => void lines.push(line),
      result: (name, data, said) =>
        void (change.command.opts<{ json?: true }>().json ? lines.push(jsonText(name, data)) : lines.push(...said)),
      unchanged: () => {
        isChanged = false;
      },
    });
    if (!change.locks || !subject || !isChanged) return lines;
    const { action, command } = change;
    const organizations = new Set([...before, ...(await organizationsOf(tx, subject, action))]);
    const event = {
      action,
      object: subject.object,
      details: { command: fullName(command), arguments: command.args, ...optionsOf(command) },
    };
    for (const organization of organizations)
      await createAuditRepository(tx).insert(operatorSource(operator()), { ...event, organization });
    return lines;
  });
}

/** Options that name the target of a command. */
interface SubjectOptions {
  readonly organization?: string;
  readonly project?: string;
  readonly stack?: string;
  readonly stacks?: string;
  readonly tag?: string;
  readonly user?: string;
}

interface Subject {
  readonly object: string;
  readonly in: { readonly organization: string } | { readonly login: string } | { readonly tokenId: string };
}

type SubjectOf = (command: Command) => Subject;

const firstArgument = (command: Command): string => command.args[0] ?? command.opts<SubjectOptions>().user ?? '';
const inOrganization = ({ organization = '' }: SubjectOptions) => ({ organization });

/**
 * Targets of commands other than the default, which takes the first argument as an object of --organization, or as a user without that
 * option.
 */
export const subjects = {
  newOrganization: (command) => ({ object: firstArgument(command), in: { organization: firstArgument(command) } }),
  token: (command) => ({ object: firstArgument(command), in: { tokenId: firstArgument(command) } }),
  tokenOrUser: (command) => {
    const object = firstArgument(command);
    return { object, in: command.args[0] === undefined ? { login: object } : { tokenId: object } };
  },
  organization: (command) => {
    const options = command.opts<SubjectOptions>();
    return { object: options.organization ?? '', in: inOrganization(options) };
  },
  ruleScope: (command) => {
    const options = command.opts<SubjectOptions>();
    const { organization, project, stack, tag } = options;
    return { object: stack ?? tag ?? project ?? organization ?? '', in: inOrganization(options) };
  },
  grantedStacks: (command) => {
    const options = command.opts<SubjectOptions>();
    return { object: options.stacks ?? '*/*', in: inOrganization(options) };
  },
} satisfies Readonly<Record<string, SubjectOf>>;

function argumentOf(command: Command): Subject {
  const { organization } = command.opts<SubjectOptions>();
  const object = firstArgument(command);
  return { object, in: organization === undefined ? { login: object } : { organization } };
}

/** Null stands for the server's log. */
async function organizationsOf(
  tx: Queryable,
  { in: scope }: Subject,
  action: AuditAction,
): Promise<readonly (string | null)[]> {
  const people = createPeopleRepository(tx);
  const rule = logRuleOf(action);
  if ('organization' in scope) return rule === 'person' ? [null, scope.organization] : [scope.organization];
  if ('login' in scope)
    return [null, ...(await (rule === 'members' ? people.listOrganizationsOf : people.listManagersOf)(scope.login))];
  // The event is recorded for any token, even an invalid one.
  if (!isUuid(scope.tokenId)) return [null];
  const login = await people.findLoginOfToken(scope.tokenId);
  if (login !== null) return [null, ...(await people.listManagersOf(login))];
  const owners = await createIdentityRepository(tx).listMemberships(scope.tokenId);
  return owners.length > 0 ? owners.map(({ name }) => name) : [null];
}
