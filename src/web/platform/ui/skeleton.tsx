import styles from './skeleton.module.css';

/** A grey bar in the place of text that is being loaded. `width`: as in CSS. Sections below it wait for it: they would move. */
export function Skeleton({ height = 12, width }: { readonly width: number | string; readonly height?: number }) {
  return <span className={styles['bar']} style={{ width, height }} data-loading aria-hidden="true" />;
}
