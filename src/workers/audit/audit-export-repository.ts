import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../shared/platform/db/sql.ts';
import { mayBeSent } from '../../shared/platform/outgoing/held-outgoing-repository.ts';
import { Bytes } from '../../shared/platform/schema/standard-schema.ts';

const NumberRow = Type.Object({ number: Type.Integer() });
const UnexportedRow = Type.Object({
  organizationId: Type.String(),
  batch: Type.Integer(),
  month: Type.String(),
  numbers: Type.Array(Type.Integer()),
  hash: Bytes,
  /** Since the receiver last accepted a batch of the organization. */
  sendFailures: Type.Integer(),
});
export type UnexportedRow = Row<typeof UnexportedRow>;

export type ExportTarget = 'blobs' | 'receiver';

export const maxPauseSeconds = 3_600;

export function createAuditExportRepository(db: Queryable) {
  // Retention has dropped the batches up to the base, and may not have deleted them yet.
  const exported = {
    blobs: sql.fragment`greatest(c.exported_batch, c.base_batch)`,
    receiver: sql.fragment`greatest(c.sent_batch, c.base_batch)`,
  };
  const inSeconds = (seconds: number) => sql.fragment`clock_timestamp() + make_interval(secs => ${seconds})`;
  // A time later than the longest pause means that the clock was set back.
  const mayBeSentNow = sql.fragment`(c.send_after <= clock_timestamp() or c.send_after > ${inSeconds(maxPauseSeconds)})`;
  return {
    /**
     * Lists batches not exported to the target yet, in the order of their chains, of organizations after the given id. For the receiver:
     * either of organizations whose next batch it has refused, or of the others.
     */
    listUnexported: (
      target: ExportTarget,
      {
        after = null,
        except = [],
        limit,
        wasRefused = false,
      }: {
        readonly after?: string | null;
        readonly except?: readonly string[];
        readonly limit: number;
        readonly wasRefused?: boolean;
      },
    ) =>
      db.any(sql.rows(UnexportedRow)`
        /* auditExports.listUnexported */
        select b.organization_id as "organizationId", b.batch, b.month::text as month, b.numbers, b.hash, c.send_failures as "sendFailures"
        from audit_chains c cross join lateral (
          -- One look into the index for each chain: as a join, Postgres may read all batches that ever were.
          select * from audit_batches b where b.organization_id = c.organization_id and b.batch > ${exported[target]}
          order by b.batch limit ${limit}) b
        where (${after}::uuid is null or c.organization_id > ${after}::uuid)
          and ${exported[target]} < c.batch and c.organization_id <> all (${sql.array([...except], 'uuid')})
          and ${target === 'blobs' ? mayBeSent : sql.fragment`(c.send_failures > 0) = ${wasRefused} and ${mayBeSentNow}`}
        order by b.organization_id, b.batch limit ${limit}`),

    hasUnexportedBefore: (target: ExportTarget, month: string) =>
      db.exists(sql.rows(NumberRow)`
        /* auditExports.hasUnexportedBefore */
        select b.batch as number
        from audit_chains c cross join lateral (
          select * from audit_batches b
          where b.organization_id = c.organization_id and b.batch > ${exported[target]} and b.month < ${month}::date offset 0) b
        where ${exported[target]} < c.batch`),

    noteExported: (target: ExportTarget, organizationId: string, batch: number) => {
      const change =
        target === 'blobs'
          ? sql.fragment`exported_batch = greatest(exported_batch, ${batch})`
          : sql.fragment`sent_batch = greatest(sent_batch, ${batch}), send_failures = 0, send_after = '-infinity'`;
      return db.query(sql.nothing`
        /* auditExports.noteExported */ update audit_chains set ${change} where organization_id = ${organizationId}`);
    },

    noteRefused: (organizationId: string, failures: number, pauseSeconds: number) =>
      db.query(sql.nothing`
        /* auditExports.noteRefused */
        update audit_chains set send_failures = ${failures}, send_after = ${inSeconds(pauseSeconds)}
        where organization_id = ${organizationId}`),
  };
}
