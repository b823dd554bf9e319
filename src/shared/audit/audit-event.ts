import { type Static, Type } from 'typebox';
import { storableJson } from '../platform/json/storable-json.ts';
import type { AuditAction } from './audit-actions.ts';

const Text = Type.Union([Type.String(), Type.Null()]);

/** `token` is a personal token, `id-token` a token issued for an id token. With `lease`, the actor is the owner of the update. */
export const SignIn = Type.Union([
  Type.Literal('token'),
  Type.Literal('team-token'),
  Type.Literal('organization-token'),
  Type.Literal('service-token'),
  Type.Literal('id-token'),
  Type.Literal('session'),
  Type.Literal('password'),
  Type.Literal('passkey'),
  Type.Literal('provider'),
  Type.Literal('link'),
  Type.Literal('lease'),
  Type.Literal('system-user'),
  Type.Literal('none'),
]);
export type SignIn = Static<typeof SignIn>;

/** Travels with jobs to the worker that commits the change. */
export const AuditSource = Type.Object({
  /** `operator`: a command on the server's own command line. */
  actor: Type.Union([Type.Literal('user'), Type.Literal('operator'), Type.Literal('server')]),
  userId: Text,
  login: Text,
  tokenId: Text,
  tokenName: Text,
  signIn: SignIn,
  role: Text,
  /** Where the role or the permission for the call comes from; null for the membership. */
  grantedBy: Text,
  address: Text,
  userAgent: Text,
  requestId: Text,
});
export type AuditSource = Readonly<Static<typeof AuditSource>>;

export interface AuditEvent {
  readonly action: AuditAction;
  /** Null for the whole server. */
  readonly organization: string | null;
  /** For example the name of a stack. */
  readonly object: string;
  /** `done` by default. */
  readonly outcome?: 'done' | 'refused';
  readonly updateId?: string | null;
  /** A few values, never a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
}

const nobody: AuditSource = {
  actor: 'server',
  userId: null,
  login: null,
  tokenId: null,
  tokenName: null,
  signIn: 'none',
  role: null,
  grantedBy: null,
  address: null,
  userAgent: null,
  requestId: null,
};

/** For what the server itself does, e.g. end an update whose lease has expired. */
export const serverSource: AuditSource = nobody;

/** `login` is the system user who runs a command on the server. */
export function operatorSource(login: string): AuditSource {
  return { ...nobody, actor: 'operator', login, signIn: 'system-user' };
}

const maxUserAgentChars = 256;

export function requestSource(
  who: Pick<AuditSource, 'signIn'> & Partial<AuditSource>,
  request: { readonly address: string; readonly userAgent: string | undefined; readonly id: string },
): AuditSource {
  return {
    ...nobody,
    actor: 'user',
    ...who,
    address: request.address,
    userAgent: request.userAgent?.slice(0, maxUserAgentChars) ?? null,
    requestId: request.id,
  };
}

const ciNames = ['system', 'build.id', 'build.number', 'build.type', 'build.url', 'pr.number', 'pr.headSHA'];
const maxCiChars = 300;

/** From the environment that the CLI sends with an update (pkg/backend/updates.go), as JSON; null if there is no CI run. */
export function ciRunOf(environment: object): string | null {
  const values = environment as Readonly<Record<string, unknown>>;
  const found = ciNames.flatMap((name): [string, string][] => {
    const value = values[`ci.${name}`];
    return typeof value === 'string' && value !== '' ? [[name, value.slice(0, maxCiChars).toWellFormed()]] : [];
  });
  return found.length === 0 ? null : storableJson(Object.fromEntries(found));
}

const maxDetailsChars = 8_192;

/** JSON text of the details, or of their size if they are too long. */
export function detailsJson(details: Readonly<Record<string, unknown>>): string {
  const json = storableJson(details);
  return json.length <= maxDetailsChars ? json : JSON.stringify({ omittedChars: json.length });
}
