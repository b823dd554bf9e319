import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../db/sql.ts';
import { Nullable, Timestamp } from '../../schema/standard-schema.ts';

const LocationsRow = Type.Object({
  generation: Type.Integer(),
  phase: Type.Union([Type.Literal('copying'), Type.Literal('switched'), Type.Literal('settled')]),
  mainId: Type.String(),
  mainUrl: Type.String(),
  otherId: Nullable(Type.String()),
  otherUrl: Nullable(Type.String()),
  faults: Type.Integer(),
  verifiedAt: Nullable(Timestamp),
});
/** `copying`: writes go to both locations, reads to `main` first. `switched`: `other` was left. `settled`: `other` does not exist. */
export type BlobLocations = Row<typeof LocationsRow>;

/** The id is also in the store. */
export interface BlobLocation {
  readonly id: string;
  readonly url: string;
}

export type BlobLocationRepository = ReturnType<typeof createBlobLocationRepository>;

/** There is a row only if `holdfast blobs` moves or has moved the blobs. */
export function createBlobLocationRepository(db: Queryable) {
  const change = async (statement: ReturnType<typeof sql.nothing>): Promise<boolean> =>
    (await db.query(statement)).rowCount > 0;
  return {
    /** Returns null if the settings name the location. */
    find: (): Promise<BlobLocations | null> =>
      db.maybeOne(sql.rows(LocationsRow)`
        /* blobLocations.find */
        select generation, phase, main_id as "mainId", main_url as "mainUrl", other_id as "otherId", other_url as "otherUrl",
          faults, verified_at as "verifiedAt" from blob_places`),

    /** The settings name the location from now on. */
    forget: () => db.query(sql.nothing`/* blobLocations.forget */ delete from blob_places`),

    /** Each blob is then also written to `other`. Returns false if a move already exists. */
    begin: (main: BlobLocation, other: BlobLocation) =>
      change(sql.nothing`
        /* blobLocations.begin */
        insert into blob_places as p (phase, main_id, main_url, other_id, other_url)
        values ('copying', ${main.id}::uuid, ${main.url}, ${other.id}::uuid, ${other.url})
        on conflict (is_only) do update set generation = p.generation + 1, phase = 'copying', faults = 0, verified_at = null,
          other_id = excluded.other_id, other_url = excluded.other_url
        where p.phase = 'settled' and p.main_id = excluded.main_id`),

    /** Records that a blob could not be written to the other location. Returns false if the locations have changed. */
    noteFault: (generation: number) =>
      change(sql.nothing`
        /* blobLocations.noteFault */
        update blob_places set faults = faults + 1, verified_at = null
        where generation = ${generation} and phase = 'copying'`),

    /** Returns false if the locations have changed since they were read, or if an upload to the other location has failed. */
    noteVerified: ({ faults, generation }: BlobLocations) =>
      change(sql.nothing`
        /* blobLocations.noteVerified */
        update blob_places set verified_at = now()
        where generation = ${generation} and phase = 'copying' and faults = ${faults}`),

    /** Called when a new verification begins or finds a fault. */
    clearVerified: () =>
      change(
        sql.nothing`/* blobLocations.clearVerified */ update blob_places set verified_at = null where phase = 'copying'`,
      ),

    /** Switches only to a verified location. Call `lockBackups` first. */
    switch: () =>
      change(sql.nothing`
        /* blobLocations.switch */
        update blob_places set generation = generation + 1, phase = 'switched', main_id = other_id, main_url = other_url,
          other_id = main_id, other_url = main_url
        where phase = 'copying' and verified_at is not null`),

    /** Prevents backups until the transaction ends. Returns whether one is running: it lists the blobs of one location. */
    lockBackups: async (): Promise<boolean> => {
      await db.query(sql.nothing`/* blobLocations.lockBackups */ lock table blob_holds in share mode`);
      return db.exists(sql.rows(Type.Object({}))`
        /* blobLocations.findBackup */ select 1 from blob_holds where held_until > now()`);
    },

    /** Forgets the other location, which was left or is given up. Returns false if the phase is another one. */
    settle: (phase: 'copying' | 'switched') =>
      change(sql.nothing`
        /* blobLocations.settle */
        update blob_places set generation = generation + 1, phase = 'settled', other_id = null, other_url = null,
          verified_at = null
        where phase = ${phase}`),
  };
}
