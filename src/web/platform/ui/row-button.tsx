import type { ComponentProps } from 'react';
import styles from './row-button.module.css';

/** The class defines its layout. */
export function RowButton({ className, ...rest }: ComponentProps<'button'>) {
  return <button type="button" className={`${styles['row']} ${className}`} {...rest} />;
}
