import { isRedacted } from '../ui/json-tree.ts';
import { Redacted } from '../ui/json-view.tsx';
import { type ListedPath, listPaths } from './listed-paths.ts';
import styles from './property-diff.module.css';
import { propertyDiffTexts } from './texts.tsx';

const maxCharacters = 600;

/** Properties that differ, each with its two sides. `sides`: what they are called. */
export function PropertyDiff({
  className = '',
  paths,
  sides = [propertyDiffTexts.before, propertyDiffTexts.after],
}: {
  readonly paths: readonly ListedPath[];
  readonly sides?: readonly [string, string];
  readonly className?: string | undefined;
}) {
  const [former, later] = sides;
  return (
    <dl className={`${styles['paths']} ${className}`}>
      {listPaths(paths).map(({ after = null, before = null, isAlsoOutput = false, path }) => (
        <div key={path} className={styles['path']}>
          <dt>
            {path}
            {isAlsoOutput ? <span className={styles['also']}> {propertyDiffTexts.andItsOutput}</span> : null}
          </dt>
          {before === null ? null : (
            <dd className={styles['before']}>
              <span className="unseen">{former}: </span>
              <Value value={before} />
            </dd>
          )}
          {after === null ? null : (
            <dd className={styles['after']}>
              <span className="unseen">{later}: </span>
              <Value value={after} />
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}

function Value({ value }: { readonly value: unknown }) {
  if (isRedacted(value)) return <Redacted />;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return (
    <span className={styles['value']}>{text.length > maxCharacters ? `${text.slice(0, maxCharacters)}…` : text}</span>
  );
}
