import { numberLocale } from '../platform/ui/locale.ts';
import styles from './change-bar.module.css';
import { listChanges } from './operations.ts';
import { changeBarTexts } from './texts.tsx';

/** Shows a bar in proportion, and the counts. */
export function ChangeBar({ changes }: { readonly changes: Readonly<Partial<Record<string, number>>> | null }) {
  const listed = listChanges(changes ?? {});
  const changed = listed.filter(({ op }) => op !== 'same');
  const total = changed.reduce((sum, { count }) => sum + count, 0);
  if (listed.length === 0) return null;
  const text = listed.map(({ count, view }) => `${count.toLocaleString(numberLocale)} ${view.done}`).join(', ');
  return (
    <span className={styles['changes']} title={text}>
      <span className="unseen">{text}</span>
      {total === 0 ? (
        <span className={styles['none']} aria-hidden="true">
          {changeBarTexts.noChanges}
        </span>
      ) : (
        <>
          <span className={styles['bar']} aria-hidden="true">
            {changed.map(({ op, count, view }) => (
              <span key={op} className={styles[view.tone]} style={{ flexGrow: count }} />
            ))}
          </span>
          <span className={styles['counts']} aria-hidden="true">
            {changed.map(({ op, count, view }) => (
              <span key={op} className={styles[`${view.tone}Text`]}>
                {view.sign}
                {count.toLocaleString(numberLocale)}
              </span>
            ))}
          </span>
        </>
      )}
    </span>
  );
}
