import styles from './skeleton.module.css';

/** `width` is as in CSS. Sections below wait for the text, because they would shift. */
export function Skeleton({ height = 12, width }: { readonly width: number | string; readonly height?: number }) {
  return <span className={styles['bar']} style={{ width, height }} data-loading aria-hidden="true" />;
}
