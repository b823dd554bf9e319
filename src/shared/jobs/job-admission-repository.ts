import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { type Queryable, sql } from '../platform/db/sql.ts';
import { Outcome } from '../platform/errors/outcome.ts';
import type { BodyEncryption } from '../platform/payloads/payload-store.ts';
import type { Job } from './job-list.ts';

const nullable = <T extends Parameters<typeof Type.Array>[0]>(type: T) => Type.Union([type, Type.Null()]);
const Bytes = Type.Unsafe<Buffer>(Type.Unknown());

const AdmissionRow = Type.Object({
  job: Type.String(),
  bodyKey: nullable(Bytes),
  bodyChunks: nullable(Type.Integer()),
  bodyBytes: nullable(Type.Integer()),
  expired: Type.Boolean(),
  outcome: nullable(Type.String()),
});
const JobRow = Type.Object({ job: Type.String() });
const ShownRow = Type.Object({ id: Type.String(), job: Type.String() });
const NoRow = Type.Object({});

/** The permission to run a queued job. */
export interface JobAdmission {
  /** This release may not know the fields of another one. */
  readonly job: unknown;
  readonly encryption: BodyEncryption | null;
  /** The admission has expired or was revoked: the job must not run. */
  readonly expired: boolean;
  readonly outcome: Outcome | null;
}

export type JobAdmissionRepository = ReturnType<typeof createJobAdmissionRepository>;

/** Only the job id is trusted from Redis. */
export function createJobAdmissionRepository(db: Queryable) {
  return {
    insert: async (id: string, job: Job, encryption: BodyEncryption | null, seconds: number): Promise<void> => {
      await db.maybeOne(sql.prepared('admissions_insert', NoRow)`
        /* admissions.insert */
        insert into job_admissions (id, job, body_key, body_chunks, body_bytes, expires_at)
        values (${id}::uuid, ${JSON.stringify(job)}::json, ${encryption ? sql.binary(encryption.key) : null}::bytea,
          ${encryption?.chunks ?? null}::integer, ${encryption?.bytes ?? null}::bigint,
          clock_timestamp() + make_interval(secs => ${seconds}::float8))`);
    },

    /** `id` must be a UUID. */
    find: async (id: string): Promise<JobAdmission | null> => {
      const row = await db.maybeOne(sql.prepared('admissions_find', AdmissionRow)`
        /* admissions.find */
        select a.job::text as job, a.body_key as "bodyKey", a.body_chunks as "bodyChunks", a.body_bytes as "bodyBytes",
          a.expires_at <= clock_timestamp() as expired, r.outcome
        from job_admissions a left join job_results r on r.job_id = a.id
        where a.id = ${id}::uuid`);
      if (!row) return null;
      const { bodyKey: key, bodyChunks: chunks, bodyBytes: bytes, expired } = row;
      return {
        job: JSON.parse(row.job) as unknown,
        encryption: key === null || chunks === null || bytes === null ? null : { key, chunks, bytes },
        expired,
        outcome: row.outcome === null ? null : Value.Parse(Outcome, JSON.parse(row.outcome)),
      };
    },

    /** Afterwards, only a worker that is already running the job may finish it. */
    revoke: async (id: string): Promise<unknown> => {
      const row = await db.maybeOne(sql.rows(JobRow)`
        /* admissions.revoke */
        update job_admissions set expires_at = least(expires_at, clock_timestamp()) where id = ${id}::uuid
        returning job::text as job`);
      return row ? (JSON.parse(row.job) as unknown) : null;
    },

    /** Also returns recently ended jobs. */
    findJobs: async (ids: readonly string[]): Promise<ReadonlyMap<string, unknown>> => {
      const rows = await db.any(sql.rows(ShownRow)`
        /* admissions.findJobs */
        select id, job::text as job from job_admissions where id = any(${sql.array([...ids], 'uuid')})`);
      return new Map(rows.map(({ id, job }) => [id, JSON.parse(job) as unknown]));
    },

    deleteExpired: (seconds: number) =>
      db.query(sql.nothing`
        /* admissions.deleteExpired */
        delete from job_admissions
        where expires_at < (select clock_timestamp()) - make_interval(secs => ${seconds})`),
  };
}
