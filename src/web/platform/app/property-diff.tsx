import { useState } from 'react';
import { isRedacted } from '../ui/json-tree.ts';
import { Redacted } from '../ui/json-view.tsx';
import { changedTexts, maxCharacters, partOf } from './changed-texts.ts';
import { type ListedPath, listPaths } from './listed-paths.ts';
import styles from './property-diff.module.css';
import { propertyDiffTexts } from './texts.tsx';

/** `sides` has the names of the two sides. */
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
      {listPaths(paths).map(({ after = null, before = null, isAlsoOutput = false, path }) => {
        const [old, next] = partsOf(before, after);
        return (
          <div key={path} className={styles['path']}>
            <dt>
              {path}
              {isAlsoOutput ? <span className={styles['also']}> {propertyDiffTexts.andItsOutput}</span> : null}
            </dt>
            {before === null ? null : (
              <dd className={styles['before']}>
                <span className="unseen">{former}: </span>
                <Value value={before} part={old} />
              </dd>
            )}
            {after === null ? null : (
              <dd className={styles['after']}>
                <span className="unseen">{later}: </span>
                <Value value={after} part={next} />
              </dd>
            )}
          </div>
        );
      })}
    </dl>
  );
}

function partsOf(before: unknown, after: unknown): readonly [string, string] {
  const isChange = before !== null && after !== null && !isRedacted(before) && !isRedacted(after);
  return isChange ? changedTexts(textOf(before), textOf(after)) : [textOf(before), textOf(after)];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function Value({ part, value }: { readonly value: unknown; readonly part: string }) {
  const [isWhole, setIsWhole] = useState(false);
  if (isRedacted(value)) return <Redacted />;
  const text = textOf(value);
  const shown = isWhole ? text : partOf(part, 0, maxCharacters);
  return (
    <>
      <span className={styles['value']}>{shown}</span>
      {shown === text ? null : (
        <>
          {' '}
          <button type="button" className={styles['more']} onClick={() => setIsWhole(true)}>
            {propertyDiffTexts.allCharacters(text.length)}
          </button>
        </>
      )}
    </>
  );
}
