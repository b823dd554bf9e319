import { existsSync } from 'node:fs';
import path from 'node:path';

/** Root of this installation: of a checkout or of a package, whose bundle lies at another depth. */
export const installationRoot = rootAbove(import.meta.dirname);

function rootAbove(folder: string): string {
  return existsSync(path.join(folder, 'package.json')) ? folder : rootAbove(path.dirname(folder));
}
