import { initTRPC, TRPCError } from '@trpc/server';
import type { Permission } from '../../../shared/access/permissions.ts';
import type { AuditAction } from '../../../shared/audit/audit-actions.ts';
import { currentSpan, failSpan, inSpan } from '../../../shared/platform/tracing/tracing.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../../platform/http/request.ts';
import type { CallerAccess, CallTarget } from '../authorize-call.ts';
import { nowhere, type ProcedureContext, type RequestCalls } from './context.ts';
import { causeOf, shapeOf } from './errors.ts';
import { input, OrganizationInput, StackInput } from './inputs.ts';

/** The app does not start if a required part is missing. */
export interface ProcedureMeta {
  readonly access?: CallerAccess;
  readonly audit?: AuditAction;
  /** Why the mutation continues while the installation is read-only. */
  readonly whileReadOnly?: string;
  /** `states`: the procedure reads whole states, in slices. The cost of all others is independent of the size of a state. */
  readonly cost?: 'states';
}

const t = initTRPC
  .context<ProcedureContext>()
  .meta<ProcedureMeta>()
  .create({
    isDev: false,
    errorFormatter: ({ error, path }) => shapeOf(error, path ?? null),
    sse: { ping: { enabled: true, intervalMs: 25_000 }, client: { reconnectAfterInactivityMs: 60_000 } },
  });

export const { mergeRouters, router } = t;

/**
 * Waits for capacity, and records duration and outcome. Refuses mutations while the installation is read-only, unless they state why they
 * continue.
 */
const observed = t.procedure
  .use(async ({ ctx, next, path }) => {
    const startedAt = performance.now();
    const result = await inSpan(`procedure ${path}`, {}, async () => {
      const ended = await ctx.request.whenAdmitted(() => next());
      const span = currentSpan();
      if (span && !ended.ok) failSpan(span, causeOf(ended.error));
      return ended;
    });
    const ms = performance.now() - startedAt;
    const code = result.ok ? 'ok' : shapeOf(result.error, path).data.code;
    ctx.services.metrics.procedureSeconds.labels(path, code).observe(ms / 1000);
    ctx.request.log.info({ procedure: path, code, ms: Math.round(ms) }, 'procedure');
    if (!result.ok && code === 'INTERNAL_SERVER_ERROR')
      ctx.request.log.error({ err: causeOf(result.error) }, 'procedure failed');
    return result;
  })
  .use(async ({ ctx, meta, next, type }) => {
    const { readOnly } = ctx.services;
    if (type !== 'mutation') return next();
    if (meta?.whileReadOnly === undefined) readOnly.assertOff();
    else readOnly.assertNotFenced();
    const result = await next();
    // A change that was made while this process learned of another site is not acknowledged.
    if (result.ok) readOnly.assertNotFenced();
    return result;
  });

const ofUser = { kind: 'user' } as const;

/** All authenticated callers, by browser session or token. */
export const userProcedure = observed.meta({ access: ofUser }).use(async ({ ctx, next }) => {
  const caller = await ctx.request.admit(ofUser, nowhere);
  return next({ ctx: { caller } });
});

/** The organization is in the input. */
export function organizationProcedure(permission: 'read' | 'manage') {
  const access = { kind: 'organization', permission } as const;
  return observed
    .meta({ access })
    .input(input(OrganizationInput))
    .use(async ({ ctx, input: { organization }, next }) => {
      const caller = await ctx.request.admit(access, { ...nowhere, organization });
      return next({ ctx: { caller } });
    });
}

/** The stack is in the input. */
export function stackProcedure(permission: Permission) {
  const access = { kind: 'stack', permission } as const;
  return observed
    .meta({ access })
    .input(input(StackInput))
    .use(async ({ ctx, input: ref, next }) => {
      const caller = await ctx.request.admit(access, ref);
      return next({ ctx: { caller } });
    });
}

/** The reads of whole states are queued per caller. */
export function stackScan(permission: Permission) {
  return stackProcedure(permission)
    .meta({ cost: 'states' })
    .use(({ ctx, input: { organization }, next }) =>
      next({ ctx: { scan: ctx.request.scanOf(ctx.caller, organization) } }),
    );
}

export function organizationMutation(permission: 'read' | 'manage', action: AuditAction) {
  const access = { kind: 'organization', permission } as const;
  return observed
    .meta({ access, audit: action })
    .input(input(OrganizationInput))
    .use(async ({ ctx, input: { organization }, next, path }) => {
      const change = await Change.begin(ctx.request, { access, action, target: { ...nowhere, organization } });
      return change.end(path, await next({ ctx: change.context }));
    });
}

export function stackMutation(permission: Permission, action: AuditAction) {
  const access = { kind: 'stack', permission } as const;
  return observed
    .meta({ access, audit: action })
    .input(input(StackInput))
    .use(async ({ ctx, input: target, next, path }) => {
      const change = await Change.begin(ctx.request, { access, action, target });
      return change.end(path, await next({ ctx: change.context }));
    });
}

/** The reads of whole states are queued per caller. */
export function stackScanMutation(permission: Permission, action: AuditAction) {
  return stackMutation(permission, action)
    .meta({ cost: 'states' })
    .use(({ ctx, input: { organization }, next }) =>
      next({ ctx: { scan: ctx.request.scanOf(ctx.caller, organization) } }),
    );
}

/** Callers change their own resources. */
export function userMutation(action: AuditAction) {
  return observed.meta({ access: ofUser, audit: action }).use(async ({ ctx, next, path }) => {
    const change = await Change.begin(ctx.request, { access: ofUser, action, target: nowhere });
    return change.end(path, await next({ ctx: change.context }));
  });
}

const ofOperator = { kind: 'operator' } as const;

export const operatorProcedure = observed.meta({ access: ofOperator }).use(async ({ ctx, next }) => {
  const caller = await ctx.request.admit(ofOperator, nowhere);
  return next({ ctx: { caller } });
});

export function operatorMutation(action: AuditAction) {
  return observed.meta({ access: ofOperator, audit: action }).use(async ({ ctx, next, path }) => {
    const change = await Change.begin(ctx.request, { access: ofOperator, action, target: nowhere });
    return change.end(path, await next({ ctx: change.context }));
  });
}

interface Declared {
  readonly access: CallerAccess;
  readonly action: AuditAction;
  readonly target: CallTarget;
}

/** Every success, and every refusal of a member, is recorded in the audit log. */
class Change {
  readonly context: { readonly caller: Caller; readonly audit: AuditTrail };
  readonly #request: RequestCalls;
  readonly #declared: Declared;

  private constructor(request: RequestCalls, declared: Declared, caller: Caller) {
    this.#request = request;
    this.#declared = declared;
    this.context = { caller, audit: request.trail(caller, declared.access, declared.action) };
  }

  /** Throws the errors of `admit`. */
  static async begin(request: RequestCalls, declared: Declared): Promise<Change> {
    const { access, action, target } = declared;
    return new Change(request, declared, await request.admit(access, target, action));
  }

  async end<R extends { readonly ok: boolean; readonly error?: unknown }>(path: string, result: R): Promise<R> {
    const { audit, caller } = this.context;
    if (!result.ok) await this.#request.recordRefusal(caller, { ...this.#declared, error: causeOf(result.error) });
    else if (!audit.isSettled)
      throw new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: `${path} was not recorded in the audit log` });
    return result;
  }
}

interface Procedures {
  readonly _def: {
    readonly procedures: Readonly<Record<string, unknown>>;
  };
}

/** A procedure must declare who may call it and, if it changes something, its action. */
export function assertDeclared({ _def }: Procedures): void {
  for (const [name, procedure] of Object.entries(_def.procedures)) {
    const { meta, type } = (procedure as { _def: { meta?: ProcedureMeta; type: string } })._def;
    if (!meta?.access) throw new Error(`Procedure ${name} does not declare who may call it`);
    if (type === 'mutation' && !meta.audit)
      throw new Error(`Procedure ${name} does not declare its action in the audit log`);
  }
}
