import type { StackDetails, StackRef } from '../platform/app/procedure-types.ts';
import { Redacted } from '../platform/ui/json-view.tsx';
import { Secret } from '../secrets/secret.tsx';
import styles from './config-table.module.css';
import { configTableTexts } from './texts.tsx';

/** Configuration by namespace. Secrets are redacted until the user reveals them. */
export function ConfigTable({
  config,
  empty,
  stack,
}: {
  readonly config: StackDetails['config'];
  readonly empty: string;
  /** The stack whose current configuration this is; without it, secrets cannot be revealed. */
  readonly stack?: StackRef;
}) {
  if (config === null) return <p className={styles['none']}>{configTableTexts.tooMuch}</p>;
  if (config.length === 0) return <p className={styles['none']}>{empty}</p>;
  const sorted = [...config].sort((one, other) => (one.key < other.key ? -1 : 1));
  return (
    <table className={styles['table']} aria-label={configTableTexts.label}>
      <tbody>
        {sorted.map(({ isSecret, key, value }) => {
          const at = key.indexOf(':');
          return (
            <tr key={key}>
              <th scope="row" className={styles['key']}>
                <span className={styles['space']}>{key.slice(0, at + 1)}</span>
                {key.slice(at + 1)}
              </th>
              <td className={styles['value']}>
                {!isSecret && value !== null ? (
                  value
                ) : stack === undefined ? (
                  <Redacted />
                ) : (
                  <Secret stack={stack} name={key} location={{ of: 'config', key }} />
                )}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
