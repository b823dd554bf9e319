import pg from 'pg';

const limitNames = [
  'statement_timeout',
  'lock_timeout',
  'idle_in_transaction_session_timeout',
  'idle_session_timeout',
  // Exists since Postgres 17.
  'transaction_timeout',
];

/** Lifts limits of the role or the database, except `ours`, for the session or the transaction. `lockWaitMs` 0 is no limit. */
export async function liftLimits(
  client: pg.Client,
  {
    isLocal = false,
    lockWaitMs = 0,
    ours = {},
  }: {
    readonly isLocal?: boolean;
    readonly lockWaitMs?: number | undefined;
    readonly ours?: Readonly<Record<string, number>>;
  } = {},
): Promise<void> {
  await client.query(
    `/* connection.liftLimits */ select set_config(name, case name when 'lock_timeout' then $3 else '0' end, $1)
     from pg_settings where name = any ($2)`,
    [isLocal, limitNames.filter((name) => !(name in ours)), String(lockWaitMs)],
  );
}

/**
 * Statements of the session may take as long as they need, whatever limits the role has, but no longer than their client lives: Postgres
 * would otherwise finish them first and keep their locks. Has no effect behind a transaction pooler.
 */
export async function allowLongStatements(client: pg.Client): Promise<void> {
  await liftLimits(client);
  for (const setting of lostClientSettings)
    await client.query(`/* connection.noticeLostClient */ set ${setting}`).catch((error: unknown) => {
      // Not every platform can, and it only shortens a wait.
      if (!(error instanceof pg.DatabaseError)) throw error;
    });
}

const lostClientSettings = [
  `client_connection_check_interval = '10s'`,
  'tcp_keepalives_idle = 30',
  'tcp_keepalives_interval = 10',
  'tcp_keepalives_count = 3',
];
