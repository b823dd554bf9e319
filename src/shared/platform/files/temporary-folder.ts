import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';

export const tmpfs = 0x01021994;

/** Returns a folder on a disk if there is one: many systems keep `/tmp` in memory. */
export async function largeTemporaryFolder(
  given = tmpdir(),
  { disk = '/var/tmp', typeOf = async (folder: string) => (await statfs(folder)).type } = {},
): Promise<string> {
  if ((await typeOf(given)) !== tmpfs) return given;
  try {
    await access(disk, constants.W_OK | constants.X_OK);
    return (await typeOf(disk)) === tmpfs ? given : disk;
  } catch {
    return given;
  }
}
