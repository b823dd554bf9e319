import type { TSchema } from 'typebox';
import type { AuditAction } from '../shared/audit/audit-actions.ts';
import type { SubjectFacts } from '../shared/identity/access-decision.ts';
import type { Permission } from '../shared/identity/permissions.ts';
import type { Role } from '../shared/identity/roles.ts';
import type { TokenKind } from '../shared/identity/token-kinds.ts';
import type { AuditTrail } from './audit/audit-trail.ts';
import type { CachedLease } from './updates/lease-cache.ts';

/**
 * Who may call a route. `organization`: who belongs to the organization in the path (`read`), or administers it (`manage`). `stack`:
 * who has the permission on the stack in the path; with `former`, the path may have a former name, and the service checks. `lease`: the holder of the update's lease; with `ended`, also just after the update has ended; with
 * `fenced`, the committing statement checks the lease itself, so a cached lease does not have to be looked up.
 */
export type Access =
  | { readonly kind: 'public' }
  | { readonly kind: 'user' }
  | { readonly kind: 'organization'; readonly permission: 'read' | 'manage' }
  | { readonly kind: 'stack'; readonly permission: Permission; readonly former?: true }
  | { readonly kind: 'lease'; readonly ended?: true; readonly fenced?: true };

/** The response format: the CLI's, or that of the contract. */
export type Dialect = 'pulumi' | 'contract';

/** The holder of the API token. */
export interface Caller {
  /** Null if the token belongs to a team or an organization. */
  readonly userId: string | null;
  readonly tokenId: string;
  readonly tokenKind: TokenKind;
  readonly tokenName: string | null;
  /** Of a team's token. */
  readonly teamName: string | null;
  /** Whether the token may do less than its owner. */
  readonly isScoped: boolean;
  readonly login: string;
  readonly displayName: string;
  readonly email: string;
  readonly siteAdmin: boolean;
  /** Role in the organization in the path; null if there is none. */
  readonly role: Role | null;
  /** Whether the caller may do anything in the organization in the path. */
  readonly belongs: boolean;
  /** What decides in the organization in the path; null where the role alone does. */
  readonly facts: SubjectFacts | null;
  /** Tags of the stack in the path as JSON text, if `facts` decide about it and it exists. */
  readonly stackTags: string | null;
}

/** The lease that admitted an execution-phase call. */
export interface Lease extends CachedLease {
  /** Whether its update ran with journal entries in no checkpoint when the lease was looked up; missing if it was cached. */
  readonly hasPendingEntries?: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
    /** The action in the audit log; or why calls are not recorded one by one. Routes that may change something need it. */
    audit?: AuditAction | { readonly none: string };
    /** It begins, renews or ends an update, and gets connections to Postgres before other calls. */
    goesFirst?: true;
    /** `payload`: the route reads the raw body itself; otherwise it is parsed as JSON. */
    body?: 'payload';
    /** For JSON bodies in the contract's dialect, where it requires more than `schema.body`. */
    contractBody?: TSchema;
    /** The Accept header does not have to name a protocol version. */
    anyAccept?: true;
    /** Only for the OpenAPI document, where the enforced schemas would say too much or too little. */
    described?: {
      readonly body?: TSchema;
      readonly responses?: Readonly<Record<number, TSchema>>;
      readonly produces?: readonly string[];
      /** Error statuses besides those implied by access and body. */
      readonly errorStatuses?: readonly number[];
    };
  }
  interface FastifyRequest {
    /** Set on routes with access `user`, `organization` or `stack`. */
    caller: Caller;
    /** Set on routes with access `lease`. */
    lease: Lease;
    /** Set on routes whose `config.audit` is an action. */
    audit: AuditTrail;
    dialect: Dialect;
  }
}
