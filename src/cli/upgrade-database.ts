import path from 'node:path';
import { abandonUpgrade, UpgradeError, upgradeCluster } from '../shared/backup/upgrade-cluster.ts';
import type { Config } from '../shared/platform/config/config.ts';
import { claimDataDir } from '../shared/platform/config/data-dir.ts';
import { endAfter } from './end-after.ts';
import { createProcessLogger } from './process-logger.ts';

/** Upgrades the embedded database to the Postgres of this release, while no server runs on the data directory. Throws UpgradeError. */
export async function upgradeEmbeddedDatabase(
  config: Config,
  { oldPostgres = null }: { readonly oldPostgres?: string | null },
): Promise<void> {
  if (config.database.url !== null)
    throw new UpgradeError('HOLDFAST_DATABASE_URL names another Postgres, which its own tools upgrade');
  const logger = createProcessLogger(config);
  const claim = await claimDataDir(config.dataDir, logger);
  const directory = path.join(config.dataDir, 'postgres');
  const forget = endAfter(() => abandonUpgrade(directory, logger));
  try {
    const upgrade = await upgradeCluster(directory, {
      ...{ claim, logger, oldPostgres },
      onStep: (text) => console.error(text),
    });
    console.log(
      upgrade === null
        ? "The database already uses this release's Postgres."
        : `The database now uses Postgres ${upgrade.to}, and has ${upgrade.rows} rows. Start the server. The files of Postgres ${upgrade.from} are in ${upgrade.kept}: delete them when all is well.`,
    );
  } finally {
    claim.release();
    await forget();
  }
}
